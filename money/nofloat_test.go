package money

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No float may come near money: 575.67 is not one. The packages that hold money
// may not name a float type or write a float number. A file that draws on paper
// is let off, since the PDF library measures in float millimetres; it gets
// amounts as text.
func TestNoFloatsNearMoney(t *testing.T) {
	looked := 0
	for _, dir := range []string{"money", "billing", "models"} {
		root := filepath.Join("..", dir)
		if _, err := os.Stat(root); os.IsNotExist(err) {
			t.Logf("no package %s in this tree", dir)
			continue
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			looked++
			for _, imported := range file.Imports {
				if strings.Contains(imported.Path.Value, "go-pdf/fpdf") {
					return nil
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					if n.Name == "float32" || n.Name == "float64" || strings.HasPrefix(n.Name, "ParseFloat") {
						t.Errorf("%s: %s", files.Position(n.Pos()), n.Name)
					}
				case *ast.BasicLit:
					if n.Kind == token.FLOAT {
						t.Errorf("%s: the number %s is a float", files.Position(n.Pos()), n.Value)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if looked == 0 {
		t.Error("no file was looked at")
	}
}
