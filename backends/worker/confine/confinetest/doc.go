// Package confinetest has a test's process run on a kernel that seems to be older than it
// is, or to have been built with less.
package confinetest
