// Package ignore knows which files of a tree its ignore files leave out, as git
// and ripgrep do: .gitignore and .git/info/exclude, and .ignore before both. It
// opens nothing: whoever walks a tree hands it what the ignore files hold. It is
// here because both sides need it, the worker to search a workspace and the
// host to send one.
package ignore

// MaxFile is how much of an ignore file counts, in bytes: a larger one is not
// written by hand.
const MaxFile = 1 << 20

// Rules are those in force in one directory. The zero value ignores nothing.
type Rules struct {
	git   *file // of .gitignore and .git/info/exclude
	plain *file // of .ignore; they come first
}

// Ignores reports whether an entry is left out. Its path is relative to the
// tree's root, with slashes; what lies below an ignored directory is not asked.
func (r Rules) Ignores(path, name string, isDir bool) bool {
	if v := r.plain.judge(path, name, isDir); v != silent {
		return v == ignored
	}
	return r.git.judge(path, name, isDir) == ignored
}

// Found says which entries that matter here a directory has.
type Found struct{ repository, git, gitignore, ignore bool }

// Note is told the name of each entry.
func (f *Found) Note(name string, isDir bool) {
	switch name {
	case ".git":
		f.repository, f.git = true, isDir
	case ".gitignore":
		f.gitignore = true
	case ".ignore":
		f.ignore = true
	}
}

// Enter returns the rules in a directory below that of r. Its path has a slash
// at its end, and is "" for the root. read returns at most [MaxFile] bytes of a file
// in it, such as ".git/info/exclude", or nothing when it cannot be read.
func (r Rules) Enter(path string, f Found, read func(name string) []byte) Rules {
	if f.repository {
		// Another repository: what its surroundings ignore is not its matter.
		r.git = nil
		if f.git {
			r.git = parse(read(".git/info/exclude"), path, nil)
		}
	}
	if f.gitignore {
		r.git = parse(read(".gitignore"), path, r.git)
	}
	if f.ignore {
		r.plain = parse(read(".ignore"), path, r.plain)
	}
	return r
}

// VersionControl reports whether a directory of this name is where a version
// control system keeps its data.
func VersionControl(name string) bool {
	switch name {
	case ".git", ".hg", ".svn", ".jj":
		return true
	}
	return false
}
