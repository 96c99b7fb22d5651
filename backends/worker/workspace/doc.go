// Package workspace gives tools the files of one directory and nothing else.
//
// A [Root] turns the paths that tools are given into names relative to the
// directory and opens them in a way that no "..", no absolute path and no
// symbolic link can lead out of it, not even one that is swapped in while a
// call runs. Whatever would leave the directory fails with
// [tool.PathOutsideRoot].
//
// What tools do with files, search and permission modes do not belong here.
package workspace
