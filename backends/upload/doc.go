// Package upload reads a folder of this machine as a stream that a new
// environment is filled with: a plain tar archive, whoever unpacks it. What
// ignore files leave out stays here, the data of version control goes along, and
// no link is ever followed. It knows no backend and keeps nothing of a file in
// memory but the piece that is on its way.
package upload
