package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/term"
)

// What cp --json writes, one object a line.
type (
	fileEvent struct {
		Event    string `json:"event"`
		Source   string `json:"source"`
		Target   string `json:"target"`
		Bytes    int64  `json:"bytes"`
		Verified bool   `json:"verified"`
	}
	errorEvent struct {
		Event string `json:"event"`
		Error string `json:"error"`
	}
	progressEvent struct {
		Event string `json:"event"`
		snapshot
	}
	summaryEvent struct {
		Event    string  `json:"event"`
		Files    int64   `json:"files"`
		Failed   int64   `json:"failed"`
		Bytes    int64   `json:"bytes"`
		Seconds  float64 `json:"seconds"`
		Verified bool    `json:"verified"`
	}
)

// event writes one of them at once: whoever reads them may wait for it.
func (c *copier) event(v any) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	if err := c.printJSON(v); err == nil {
		c.out.Flush()
	}
}

// showProgress shows how far the copy is until stop is called.
func (c *copier) showProgress() (stop func()) {
	switch {
	case c.events:
		return logLines(c.meter, logEvery, func(s snapshot) { c.event(progressEvent{"progress", s}) }).stop
	case hasRoom(c.stderr):
		p := showBar(c.stderr, c.meter)
		c.showAbove(p.above)
		return func() {
			c.showAbove(nil)
			p.stop()
		}
	}
	return logLines(c.meter, logEvery, func(s snapshot) { c.printf("%v\n", s) }).stop
}

// hasRoom reports whether w is a terminal that says how large it is.
func hasRoom(w io.Writer) bool {
	fd, ok := terminal(w)
	if !ok {
		return false
	}
	width, height, err := term.GetSize(fd)
	return err == nil && width > 0 && height > 0
}

// summarize writes the last line.
func (c *copier) summarize(took time.Duration, err error) {
	files, failed, bytes := c.done.Load(), c.failed.Load(), c.meter.bytes.Load()
	if c.events {
		c.event(summaryEvent{"summary", files, failed, bytes, took.Seconds(), c.verify && err == nil})
		return
	}
	line := summary(files, bytes, took)
	var partial *partialError
	switch {
	case errors.As(err, &partial):
		line += fmt.Sprintf(", %d failed", failed)
	case errors.Is(err, context.Canceled):
		line += ", interrupted"
	case err != nil:
		return // it says all there is to say
	case c.verify:
		line += ", verified"
	}
	c.printf("%s\n", line)
}
