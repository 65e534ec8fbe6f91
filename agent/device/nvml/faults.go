package nvml

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Fault is what is wrong with a card until it is mended.
type Fault struct {
	Xid    int       `json:"xid"`
	At     time.Time `json:"at"`
	BootID string    `json:"boot_id"` // of the host when it came
}

// faultFile keeps the faults of cards by UUID. It is read anew each time: an
// operator mends a card by Mend while the agent runs.
type faultFile struct {
	path string
	mu   *sync.Mutex
}

func faultsIn(dir string) faultFile {
	return faultFile{path: filepath.Join(dir, "nvml-faults.json"), mu: &sync.Mutex{}}
}

// Mend takes a card's fault off the record that an agent keeps in dir, on the
// operator's word that the card was reset or replaced; it does not touch the card.
// mended is false when there is no such fault.
func Mend(dir, card string) (mended bool, err error) {
	f := faultsIn(dir)
	err = f.change(func(faults map[string]Fault) {
		_, mended = faults[card]
		delete(faults, card)
	})
	return mended, err
}

func (f faultFile) read() (map[string]Fault, error) {
	faults := map[string]Fault{}
	raw, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return faults, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &faults); err != nil {
		return nil, fmt.Errorf("read the faults of cards in %s: %w; remove the file when all cards are well", f.path, err)
	}
	return faults, nil
}

// change writes the file anew, whole.
func (f faultFile) change(do func(map[string]Fault)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	faults, err := f.read()
	if err != nil {
		return err
	}
	do(faults)
	raw, err := json.Marshal(faults)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(f.path+".new", f.path)
}
