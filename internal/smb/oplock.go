package smb

import (
	"slices"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// Where there are no leases, each handle has an oplock of its own, which every
// other open breaks, this client's as well. What one of them allows goes for
// the file: the server would break it before anybody else changes the file.

// oplockLevel asks for rights.
func oplockLevel(r remote.Rights) smb2msg.OplockLevel {
	if r&remote.CacheWrite != 0 {
		return smb2msg.OplockBatch
	}
	return smb2msg.OplockII
}

// oplockRights is what a level allows. Levels that are none allow nothing.
func oplockRights(level smb2msg.OplockLevel) remote.Rights {
	switch level {
	case smb2msg.OplockII:
		return remote.CacheRead
	case smb2msg.OplockExclusive:
		return remote.CacheRead | remote.CacheWrite
	case smb2msg.OplockBatch:
		return allRights
	}
	return 0
}

// brokenTo is what is left of an oplock: reading at most.
func brokenTo(level smb2msg.OplockLevel) smb2msg.OplockLevel {
	if level == smb2msg.OplockII {
		return level
	}
	return smb2msg.OplockNone
}

// takeOplock lets a handle have the oplock that its CREATE was given, as far as
// a break has left it that came before; then it says that the server waits for
// an answer to that. v.mu is held.
func (o *Open) takeOplock(a *asking, m *smb2msg.CreateResponse) (answer bool) {
	c := &o.f.v.caching
	level := m.OplockLevel
	if oplockRights(level) == 0 {
		return false
	}
	to, broken := c.early[o.id]
	switch {
	case broken:
		delete(c.early, o.id)
	case a.left == 0: // there were too many of them
		to, broken = smb2msg.OplockNone, true
	}
	if broken {
		answer = level != smb2msg.OplockII
		level = min(level, to)
	}
	o.level = level
	c.oplocks[o.id] = o
	o.f.oplocks = append(o.f.oplocks, o)
	return answer
}

// dropOplock takes a handle's oplock before it is closed. v.mu is held.
func (o *Open) dropOplock() {
	c := &o.f.v.caching
	if c.oplocks[o.id] == o {
		delete(c.oplocks, o.id)
	}
	o.f.oplocks = slices.DeleteFunc(o.f.oplocks, func(other *Open) bool { return other == o })
}
