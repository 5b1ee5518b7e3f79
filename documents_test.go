package pando_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// needsSources skips a test where the binary was copied to another machine without them.
func needsSources(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("doc.go"); err != nil {
		t.Skip("the sources are not here: ", err)
	}
}

// The README promises an example for each method of what a caller holds.
func TestEveryMethodHasAnExample(t *testing.T) {
	needsSources(t)
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

// Documentation shows the body of an example and nothing else, so that it must be a
// whole program: whoever copies it into a main function has all of it.
func TestExamplesAreWhole(t *testing.T) {
	needsSources(t)
	names, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	examples := doc.Examples(files...)
	for _, e := range examples {
		if e.Play == nil {
			t.Errorf("Example%s needs what is declared in another file", e.Name)
			continue
		}
		for _, d := range e.Play.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.Name != "main" {
					t.Errorf("Example%s needs the function %s", e.Name, d.Name.Name)
				}
			case *ast.GenDecl:
				if d.Tok != token.IMPORT {
					t.Errorf("Example%s needs a declaration outside of it", e.Name)
				}
			}
		}
	}
	if len(examples) < 100 {
		t.Errorf("only %d examples were found", len(examples))
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
