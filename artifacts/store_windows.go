package artifacts

// syncDir does nothing: Windows cannot sync a directory, NTFS journals names.
func (*Store) syncDir(string) error { return nil }
