package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers says which packages of this module each package may import. A new edge
// is a line here that a reviewer sees. Tests' imports are not counted.
var layers = map[string][]string{
	"":       {"cli", "agent/runtime/sandbox"},
	"cli":    {"agent/doctor", "deploy", "server", "agent", "agent/device", "agent/device/nvml", "agent/device/simulator", "agent/runtime/sandbox", "api", "billing", "billing/stripe", "billing/stripedouble", "fleet", "gpu", "models/store"},
	"api":    {},
	"server": {"web", "static", "fleet", "billing", "api", "wire", "tunnel", "models", "models/store", "money", "gpu"},
	"web":    {"static"},
	"static": {},

	"fleet":                  {"billing", "models", "models/store", "placement", "wire", "gpu", "money"},
	"billing":                {"billing/invoice", "billing/stripe", "models", "models/store", "money", "gpu"},
	"billing/invoice":        {"models", "money"},
	"billing/stripe":         {},
	"billing/stripedouble":   {},
	"models/store":           {"models", "money", "gpu"},
	"models/store/storetest": {"models/store"},
	"models":                 {"money", "gpu"},
	"money":                  {},
	"gpu":                    {},
	"placement":              {},
	"wire":                   {"gpu"},
	"tunnel":                 {},

	"agent":                   {"agent/device", "agent/runtime", "wire", "tunnel", "gpu"},
	"agent/doctor":            {"agent/runtime"},
	"deploy":                  {},
	"agent/device":            {"gpu"},
	"agent/device/devicetest": {"agent/device", "gpu"},
	"agent/device/nvml":       {"agent/device", "gpu"},
	"agent/device/simulator":  {"agent/device", "gpu"},
	"agent/runtime":           {},
	"agent/runtime/cgroup":    {},
	"agent/runtime/jail":      {"agent/runtime"},
	"agent/runtime/shim":      {"agent/runtime", "agent/runtime/cgroup", "agent/runtime/jail"},
	"agent/runtime/sandbox":   {"agent/runtime", "agent/runtime/cgroup", "agent/runtime/jail", "agent/runtime/shim"},
	"e2e":                     {},
}

// owners names who may import an outside library: a package and what lies below
// it. The two ends of the link share theirs.
var owners = map[string][]string{
	"github.com/labstack/echo/v4":      {"server"},
	"github.com/danielgtaylor/huma/v2": {"server"},
	"gorm.io/":                         {"models/store"},
	"github.com/glebarez/sqlite":       {"models/store"},
	"github.com/pressly/goose/v3":      {"models/store"},
	"github.com/stripe/stripe-go/v76":  {"billing/stripe"},
	"codeberg.org/go-pdf/fpdf":         {"billing/invoice"},
	"github.com/spf13/":                {"cli"},
	"github.com/a-h/templ":             {"web"},
	"github.com/gorilla/websocket":     {"server", "agent", "tunnel"},
	"github.com/prometheus/":           {"server", "agent"},
	"github.com/hashicorp/yamux":       {"server", "agent", "tunnel"},
	"github.com/NVIDIA/go-nvml":        {"agent/device/nvml"},
	"golang.org/x/sys":                 {"cli", "agent", "billing/stripedouble"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestImportsGoOneWay(t *testing.T) {
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "berth"), "/")
		allowed, known := layers[name]
		if !known {
			t.Errorf("package %q has no line in layers: say what it may import", name)
			continue
		}
		for _, imported := range p.Imports {
			if inner, ok := strings.CutPrefix(imported, "berth/"); ok && !slices.Contains(allowed, inner) {
				t.Errorf("%s imports %s, which layers does not allow", p.ImportPath, imported)
			}
			for library, owner := range owners {
				if strings.HasPrefix(imported, library) && !slices.ContainsFunc(owner, func(o string) bool { return name == o || strings.HasPrefix(name, o+"/") }) {
					t.Errorf("%s imports %s, which belongs to %v", p.ImportPath, imported, owner)
				}
			}
		}
	}
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	list := exec.Command("go", "list", "-tags", "nvml", "-json=ImportPath,Imports", "./...")
	list.Env = append(os.Environ(), "CGO_ENABLED=1") // or what needs cgo is left out
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
