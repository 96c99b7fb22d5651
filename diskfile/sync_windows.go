package diskfile

import "os"

// SyncDir makes what was made, renamed and removed in the directory survive a crash of
// the machine. It does nothing: Windows has no way to sync a directory, and NTFS
// journals its entries.
func SyncDir(string) error { return nil }

// SyncDirIn is [SyncDir] for a directory below a root.
func SyncDirIn(*os.Root, string) error { return nil }
