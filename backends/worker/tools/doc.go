// Package tools holds the workspace tools: what an agent reads, writes, edits,
// lists, searches, runs and presents in one workspace. The same code answers
// inside every environment and, for local sessions, in the service itself.
//
// Running commands is behind the interface [Commands]; confinement, the
// protocol and text views of results do not belong here.
package tools
