package pando_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// The README promises an example for each method of what a caller holds.
func TestEveryMethodHasAnExample(t *testing.T) {
	examples, methods := map[string]bool{}, map[string]bool{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok:
			case strings.HasPrefix(f.Name.Name, "Example"):
				examples[strings.TrimPrefix(f.Name.Name, "Example")] = true
			case f.Recv != nil && f.Name.IsExported() && !strings.HasSuffix(e.Name(), "_test.go"):
				methods[receiver(f.Recv.List[0].Type)+"_"+f.Name.Name] = true
			}
		}
	}
	for m := range methods {
		of, _, _ := strings.Cut(m, "_")
		if slices.Contains([]string{"Frozen", "Tree", "Batcher", "Buffer", "Ranges"}, of) && !examples[m] {
			t.Errorf("no example for %s", m)
		}
	}
	if len(methods) < 20 {
		t.Errorf("only %d methods were found", len(methods))
	}
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
