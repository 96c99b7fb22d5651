package search

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// page collects the lines of one page of a search.
type page struct {
	query *Query
	found *Found
	room  int // bytes that are left
	path  string
	skip  int // matches of this file that earlier pages had
}

func (p *page) full() bool { return p.found.Returned >= p.query.Limit || p.room <= 0 }

// read adds the lines of one file.
func (p *page) read(r io.Reader) error {
	var s scanner
	s.reset(r)
	var (
		keep   int // where the window's history begins
		number = 1 // the number of the line at shown
		shown  int // up to here lines were shown or passed
		after  int // lines of context that are still due
	)
	for {
		from := s.window - keep // where the new lines will begin
		more, err := s.next(keep)
		if err != nil || !more {
			return err
		}
		shown -= keep
		text := s.buffer[:s.window]
		done := false
		p.query.Matcher.lines(&s, text, from, func(start, end int) bool {
			if p.skip > 0 {
				p.skip--
				return true
			}
			number, shown = p.trail(text[:start], number, shown, &after)
			if p.full() {
				done = true
				return false
			}
			// Whatever lies between is passed, but for the lines before the match.
			first := back(text, start, shown, p.query.Before)
			number += bytes.Count(text[shown:first], newline)
			for shown = first; shown < start; number++ {
				shown = p.add(text, shown, number, true)
			}
			shown = p.add(text, start, number, false)
			number++
			p.found.Returned++
			after = p.query.After
			return true
		})
		if !done {
			number, shown = p.trail(text, number, shown, &after)
		}
		if done || p.full() && after == 0 {
			return nil
		}
		keep = back(text, len(text), shown, p.query.Before)
		number += bytes.Count(text[shown:keep], newline)
		shown = keep
	}
}

// trail adds the context that is due after a match, as far as text reaches.
func (p *page) trail(text []byte, number, shown int, after *int) (int, int) {
	for ; *after > 0 && shown < len(text); *after-- {
		shown = p.add(text, shown, number, true)
		number++
	}
	return number, shown
}

// add shows the line that begins at start and returns where the next begins.
func (p *page) add(text []byte, start, number int, context bool) int {
	end := lineEnd(text, start)
	line := p.query.Matcher.show(text[start:end], context)
	p.room -= len(line)
	p.found.Lines = append(p.found.Lines, Line{p.path, number, line, context})
	return min(end+1, len(text))
}

var newline = []byte{'\n'}

// back returns where the line begins that is n lines before the one that
// begins at start, but not before floor.
func back(text []byte, start, floor, n int) int {
	for ; n > 0 && start > floor; n-- {
		start = floor + bytes.LastIndexByte(text[floor:start-1], '\n') + 1
	}
	return start
}

// show is a line as a page holds it: valid UTF-8, without its end, and a long
// one cut to the surroundings of its match.
func (m *Matcher) show(line []byte, context bool) string {
	line = bytes.TrimSuffix(line, []byte{'\r'})
	from, to := 0, len(line)
	if len(line) > maxShown {
		if match := m.re.FindIndex(line); match != nil && !context {
			from = max(0, min(match[0]-maxShown/4, len(line)-maxShown))
		}
		to = min(from+maxShown, len(line))
		for from > 0 && from < to && !utf8.RuneStart(line[from]) {
			from++
		}
		for to < len(line) && to > from && !utf8.RuneStart(line[to]) {
			to--
		}
	}
	s := strings.ToValidUTF8(string(line[from:to]), "\ufffd")
	if from > 0 {
		s = "…" + s
	}
	if to < len(line) {
		s += "…"
	}
	return s
}
