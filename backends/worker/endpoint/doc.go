// Package endpoint is the place where a worker is found: the path of its Unix
// socket, the file locks and files around it, and the question who may connect.
// Nothing here reads a frame.
package endpoint
