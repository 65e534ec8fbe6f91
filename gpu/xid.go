package gpu

import "fmt"

// Xid is a fault that NVIDIA's driver reports by number.
type Xid struct {
	Number int
	Name   string
	Sick   bool   // the card takes no work until Remedy is done; else it stays in service
	Remedy string // what the operator does
}

const (
	tellTenant = "nothing: the program on it is at fault"
	resetLater = "reset the card when it is next empty"
	resetNow   = "reset the card"
)

// xids is the policy for each fault that is known.
//
// Source: NVIDIA's XID catalogue, immediate actions; where sources disagree (109)
// the card stays in service.
var xids = []Xid{
	{13, "graphics engine exception", false, tellTenant},
	{31, "memory page fault", false, tellTenant},
	{43, "the GPU stopped a program", false, tellTenant},
	{45, "clean-up after a program", false, tellTenant},
	{46, "the GPU stopped processing", true, resetNow},
	{48, "double-bit ECC error", true, resetNow},
	{54, "auxiliary power is not connected", true, "check the card's power connector"},
	{62, "internal micro-controller halt", true, resetNow},
	{63, "a memory row was remapped", false, resetLater},
	{64, "a memory row could not be remapped", true, "reset the card; if it comes again, replace it"},
	{68, "video processor exception", false, tellTenant},
	{74, "NVLink error", true, "look at the link or its bridge, then reset the card"},
	{79, "the GPU has fallen off the bus", true, "restart the machine; if it comes again, reseat or replace the card"},
	{92, "many single-bit ECC errors", false, "nothing"},
	{94, "contained ECC error", false, resetLater},
	{95, "uncontained ECC error", true, resetNow},
	{109, "context switch time-out", false, tellTenant},
	{110, "security fault", true, resetNow},
	{119, "the GPU's system processor does not answer", true, resetNow},
	{120, "error of the GPU's system processor", true, resetNow},
	{136, "link training failed", true, resetNow},
	{140, "unrecovered ECC error", true, resetNow},
	{143, "the GPU could not be initialised", true, resetNow},
	{156, "resource retirement event", true, resetNow},
	{158, "fatal time-out", true, resetNow},
	{171, "uncorrectable DRAM error", true, resetNow},
	{172, "uncorrectable SRAM error", true, resetNow},
}

// LookupXid finds the policy for a fault. One that is not known keeps its card in
// service: a card that needs more says so with an Xid that is.
func LookupXid(number int) Xid {
	for _, x := range xids {
		if x.Number == number {
			return x
		}
	}
	return Xid{Number: number, Name: "a fault that Berth does not know", Remedy: "look it up in NVIDIA's XID catalogue"}
}

// String is what people are told.
func (x Xid) String() string { return fmt.Sprintf("Xid %d, %s: %s", x.Number, x.Name, x.Remedy) }
