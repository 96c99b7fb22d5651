//go:build unix

package store

// permissionsMatter says that mode bits keep others out.
const permissionsMatter = true

// movesOpenFiles says that a directory can be moved while a file in it is open.
const movesOpenFiles = true
