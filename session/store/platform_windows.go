package store

// permissionsMatter is false: access lists are inherited from the user's own
// directories, and mode bits say nothing.
const permissionsMatter = false

// movesOpenFiles is false: Windows keeps a directory in its place while a file in it
// is open.
const movesOpenFiles = false
