// Package search walks a workspace in parallel, honouring ignore files, and
// finds files by name and lines by regular expression.
//
// What it leaves out is what ripgrep leaves out: what .gitignore, .ignore and
// .git/info/exclude exclude, binary files, and symbolic links. Hidden files are
// searched, the directories in which version control keeps its data are not.
// Only files of the workspace are consulted, so that a result does not depend on
// who asks.
package search
