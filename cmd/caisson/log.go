package main

import (
	"log/slog"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// logger makes the program's log on stderr: lines for a person where stderr is
// a terminal, else one JSON object a line.
func (a *app) logger(level string) (*slog.Logger, error) {
	if a.logLevel != "" {
		level = a.logLevel
	}
	l, err := zerolog.ParseLevel(level)
	if err != nil || l < zerolog.DebugLevel || l > zerolog.ErrorLevel {
		return nil, usagef("the log level %q is none of debug, info, warn, error", level)
	}
	out := a.errs
	if f, ok := out.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		out = zerolog.ConsoleWriter{Out: f, TimeFormat: time.TimeOnly}
	}
	return slog.New(zerolog.NewSlogHandler(zerolog.New(out).Level(l))), nil
}
