// Generate writes the files that are made from the Go types of the editor
// protocol and of the configuration: JSON Schemas, TypeScript types, and the
// tables of the configuration's documentation. They are checked in; with -check
// nothing is written and stale files are an error.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caisson-dev/caisson/session/config"
)

func main() {
	root := flag.String("root", ".", "the root of the repository")
	check := flag.Bool("check", false, "only say which files are stale")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run writes every generated file below root, or only compares them.
func run(root string, check bool) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(root, filepath.FromSlash(f.path))
		old, err := os.ReadFile(path)
		if err == nil && bytes.Equal(old, f.content) {
			continue
		}
		if check {
			return fmt.Errorf("%s is stale: run make generate", f.path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.content, 0o644); err != nil {
			return err
		}
		fmt.Println(f.path)
	}
	return nil
}

// file is one generated file; its path has slashes.
type file struct {
	path    string
	content []byte
}

// The generated files. The protocol's schema stands twice: where the program
// embeds it, and in the npm package.
const (
	schemaEmbedded = "rpc/protocol/protocol.schema.json"
	schemaPackage  = "editor-extension/packages/protocol/protocol.schema.json"
	typesPackage   = "editor-extension/packages/protocol/src/protocol.ts"
	configPackage  = "editor-extension/packages/protocol/config.schema.json"
)

// generate makes the content of every generated file from the Go types and, for
// their comments, the sources below root.
func generate(root string) ([]file, error) {
	docs, err := readDocs(filepath.Join(root, "rpc", "protocol"))
	if err != nil {
		return nil, err
	}
	model, err := newModel(docs)
	if err != nil {
		return nil, err
	}
	schema, err := model.schema()
	if err != nil {
		return nil, err
	}
	config, err := config.Schema()
	if err != nil {
		return nil, err
	}
	configSchema, err := encode(config)
	if err != nil {
		return nil, err
	}
	configText, err := configuration(root, config)
	if err != nil {
		return nil, err
	}
	toolsText, err := builtInTools()
	if err != nil {
		return nil, err
	}
	return []file{
		{configDoc, configText},
		{configPackage, configSchema},
		{schemaEmbedded, schema},
		{schemaPackage, schema},
		{toolsPackage, toolsText},
		{typesPackage, model.typescript()},
	}, nil
}
