// Package client is a typed client of the editor protocol, for desktop apps,
// command line tools and tests. It starts the service as a process or speaks
// over any pair of streams; see [Start] and [New].
package client
