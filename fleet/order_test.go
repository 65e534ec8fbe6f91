package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	"berth/fleet"
	"berth/models"
)

func TestOrderCheck(t *testing.T) {
	good := fleet.Order{SKU: "a100-80gb.1g.10gb", Name: "tern-04", DiskGiB: 20, Image: "host", Command: []string{"sh", "-c", "sleep 1"}, Env: map[string]string{"A_1": "ü"}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	many := map[string]string{}
	for i := range 129 {
		many[fmt.Sprintf("V%d", i)] = ""
	}
	for name, tc := range map[string]struct {
		change func(o *fleet.Order)
		field  string
		says   string
	}{
		"unknown SKU":    {func(o *fleet.Order) { o.SKU = "b300" }, "sku", "b300"},
		"no SKU":         {func(o *fleet.Order) { o.SKU = "" }, "sku", "catalogue"},
		"long SKU":       {func(o *fleet.Order) { o.SKU = strings.Repeat("x", 1000) }, "sku", "…"},
		"mode":           {func(o *fleet.Order) { o.BillingMode = models.Spot }, "billing_mode", "spot"},
		"upper case":     {func(o *fleet.Order) { o.Name = "Tern" }, "name", "lower-case"},
		"hyphen first":   {func(o *fleet.Order) { o.Name = "-tern" }, "name", "lower-case"},
		"hyphen last":    {func(o *fleet.Order) { o.Name = "tern-" }, "name", "lower-case"},
		"newline":        {func(o *fleet.Order) { o.Name = "tern\n" }, "name", "lower-case"},
		"64 long":        {func(o *fleet.Order) { o.Name = strings.Repeat("a", 64) }, "name", "63"},
		"no disk":        {func(o *fleet.Order) { o.DiskGiB = 0 }, "disk_gib", "1 to 2000"},
		"negative disk":  {func(o *fleet.Order) { o.DiskGiB = -1 }, "disk_gib", "1 to 2000"},
		"2001 disk":      {func(o *fleet.Order) { o.DiskGiB = 2001 }, "disk_gib", "1 to 2000"},
		"bad variable":   {func(o *fleet.Order) { o.Env = map[string]string{"1A": ""} }, "env", "1A"},
		"with =":         {func(o *fleet.Order) { o.Env = map[string]string{"A=B": ""} }, "env", "A=B"},
		"empty variable": {func(o *fleet.Order) { o.Env = map[string]string{"": "x"} }, "env", "variable"},
		"NUL":            {func(o *fleet.Order) { o.Env = map[string]string{"A": "x\x00"} }, "env", "A"},
		"129 variables":  {func(o *fleet.Order) { o.Env = many }, "env", "129"},
		"large env":      {func(o *fleet.Order) { o.Env = map[string]string{"A": strings.Repeat("x", 32<<10)} }, "env", "bytes"},
		"script":         {func(o *fleet.Order) { o.StartupScript = strings.Repeat("x", 64<<10+1) }, "startup_script", "65537"},
		"script bytes":   {func(o *fleet.Order) { o.StartupScript = "\xff" }, "startup_script", "UTF-8"},
		"image bytes":    {func(o *fleet.Order) { o.Image = "\x00" }, "image", "image"},
		"empty program":  {func(o *fleet.Order) { o.Command = []string{" "} }, "command", "program"},
		"257 words":      {func(o *fleet.Order) { o.Command = make([]string, 257) }, "command", "257"},
		"command bytes":  {func(o *fleet.Order) { o.Command = []string{"a", "\x00"} }, "command", "UTF-8"},
		"large command":  {func(o *fleet.Order) { o.Command = []string{strings.Repeat("a", 33<<10)} }, "command", "bytes"},
		"long key":       {func(o *fleet.Order) { o.ClientKey = strings.Repeat("k", 256) }, "idempotency_key", "255"},
	} {
		o := good
		tc.change(&o)
		err := o.Check()
		if code(err) != "invalid" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		fields := err.(*models.Problem).Fields
		if len(fields) != 1 || !strings.Contains(fields[tc.field], tc.says) {
			t.Errorf("%s: %v", name, fields)
		}
	}
	// B17: taken, and overwritten by the node.
	good.Env = map[string]string{"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": "0"}
	if err := good.Check(); err != nil {
		t.Errorf("variables about GPUs: %v", err)
	}
	var all fleet.Order
	all.DiskGiB, all.Name, all.BillingMode = -5, "!", "rent"
	if p := all.Check().(*models.Problem); len(p.Fields) != 4 {
		t.Errorf("not all at once: %v", p.Fields)
	}
}

func FuzzOrderCheck(f *testing.F) {
	f.Add("a100-80gb", "tern", "A", "1", "echo", 20)
	f.Fuzz(func(t *testing.T, sku, name, key, value, script string, disk int) {
		o := fleet.Order{SKU: sku, Name: name, Env: map[string]string{key: value}, StartupScript: script, Command: []string{script}, DiskGiB: disk}
		if err := o.Check(); err != nil && code(err) != "invalid" {
			t.Error(err)
		}
	})
}
