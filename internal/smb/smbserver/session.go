package smbserver

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// session is one user on one connection. See [MS-SMB2] 3.3.1.8.
type session struct {
	c  *conn
	id uint64

	// Set before ready.
	user       auth.Identity
	sign, seal bool             // demanded of every request
	signer     *smbcrypt.Signer // nil for guests and nobody
	sealer     *smbcrypt.Sealer // nil if sealing is not possible
	ready      atomic.Bool
	seals      atomic.Bool // the client seals, whether or not it has to

	mu       sync.Mutex
	ntlm     *auth.NTLMServer // guarded by mu, as what follows; of the logon under way
	acceptor *auth.Acceptor
	preauth  smbcrypt.Preauth
	trees    map[uint32]*tree
	opens    map[uint64]*open
	lastTree uint32
}

// tree is a share that a session has connected to. See [MS-SMB2] 3.3.1.9.
type tree struct {
	id    uint32
	share *share
}

// sessionSetup takes one leg of a logon. See [MS-SMB2] 3.3.5.5.
func (r *request) sessionSetup() ntstatus.Status {
	c := r.x.c
	t := c.terms.Load()
	var m smb2msg.SessionSetupRequest
	switch {
	case !r.decode(&m):
		return ntstatus.InvalidParameter
	case m.Flags&smb2msg.SessionBinding != 0:
		return ntstatus.RequestNotAccepted
	case c.srv.cfg.RequireSealing && t.cipher == 0:
		return ntstatus.AccessDenied
	}
	s := r.session
	switch {
	case r.hdr.SessionID == 0:
		s = c.newSession()
	case s == nil:
		return ntstatus.UserSessionDeleted
	}
	r.session, r.hdr.SessionID = s, s.id
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.acceptor == nil {
		s.ntlm = auth.NewNTLMServer(c.srv.logons())
		s.acceptor = auth.NewAcceptor(s.ntlm)
		s.preauth = t.preauth
	}
	s.preauth.Update(r.msg)
	token, done, err := s.acceptor.Next(m.SecurityBuffer)
	if err != nil {
		c.srv.cfg.Logger.Debug("logon failed", "conn", c.number, "err", err)
		s.acceptor = nil
		if !s.ready.Load() {
			c.forget(s)
		}
		if errors.Is(err, auth.ErrLogon) || errors.Is(err, auth.ErrMIC) {
			return ntstatus.LogonFailure
		}
		return ntstatus.InvalidParameter
	}
	reply := smb2msg.SessionSetupResponse{SecurityBuffer: token}
	if !done {
		r.after = func(reply []byte) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.preauth.Update(reply)
		}
		r.reply(&reply)
		return ntstatus.MoreProcessingRequired
	}
	if !s.ready.Load() {
		if status := s.establishLocked(t, &m); status != ntstatus.Success {
			c.forget(s)
			return status
		}
	}
	s.acceptor = nil
	// Even where nothing is signed, this is: the client learns that nobody
	// has meddled. See [MS-SMB2] 3.3.5.5.3.
	r.sign = s.signer != nil
	switch {
	case s.user.Guest:
		reply.SessionFlags |= smb2msg.SessionFlagIsGuest
	case s.user.Anonymous:
		reply.SessionFlags |= smb2msg.SessionFlagIsNull
	}
	if s.seal {
		reply.SessionFlags |= smb2msg.SessionFlagEncryptData
	}
	if m.PreviousSessionID != 0 && m.PreviousSessionID != s.id {
		r.after = func([]byte) { c.srv.replace(m.PreviousSessionID, s) }
	}
	return r.reply(&reply)
}

// establishLocked derives the keys of a user who has logged on.
func (s *session) establishLocked(t *terms, m *smb2msg.SessionSetupRequest) ntstatus.Status {
	cfg := &s.c.srv.cfg
	s.user = s.ntlm.Identity()
	if s.user.Guest || s.user.Anonymous {
		if cfg.RequireSealing || cfg.RequireSigning {
			return ntstatus.AccessDenied
		}
	} else {
		keys := smbcrypt.DeriveKeys(uint16(t.dialect), t.cipher, s.acceptor.SessionKey(), &s.preauth)
		var err error
		if s.signer, err = smbcrypt.NewSigner(t.signing, keys.Sign); err != nil {
			return ntstatus.InternalError
		}
		if t.cipher != 0 {
			// The names are the client's: it encrypts what we decrypt.
			if s.sealer, err = smbcrypt.NewSealer(t.cipher, s.id, keys.Decrypt, keys.Encrypt); err != nil {
				return ntstatus.InternalError
			}
		}
		s.sign = cfg.RequireSigning || m.SecurityMode&smb2msg.SigningRequired != 0
		s.seal = cfg.RequireSealing
	}
	s.c.srv.stats.logons.Add(1)
	s.ready.Store(true)
	return ntstatus.Success
}

// logons says who may log on.
func (s *Server) logons() auth.ServerConfig {
	return auth.ServerConfig{
		Name:  s.cfg.Name,
		Guest: s.cfg.Guest, Anonymous: s.cfg.Anonymous,
		Lookup: func(user, _ string) (string, bool) {
			if password, ok := s.cfg.Users[user]; ok {
				return password, true
			}
			for name, password := range s.cfg.Users {
				if strings.EqualFold(name, user) {
					return password, true
				}
			}
			return "", false
		},
	}
}

func (c *conn) newSession() *session {
	s := &session{c: c, trees: map[uint32]*tree{}, opens: map[uint64]*open{}}
	c.srv.mu.Lock()
	c.srv.lastID++
	s.id = c.srv.lastID
	c.srv.sessions[s.id] = s
	c.srv.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions != nil {
		c.sessions[s.id] = s
	}
	return s
}

// forget takes a session out of the tables. It is not ended thereby.
func (c *conn) forget(s *session) {
	c.mu.Lock()
	delete(c.sessions, s.id)
	c.mu.Unlock()
	c.srv.mu.Lock()
	delete(c.srv.sessions, s.id)
	c.srv.mu.Unlock()
}

// replace ends the session that a client had before, if the user is the same.
func (s *Server) replace(id uint64, by *session) {
	s.mu.Lock()
	old := s.sessions[id]
	s.mu.Unlock()
	if old != nil && old.ready.Load() && old.user == by.user {
		old.c.forget(old)
		old.end()
	}
}

// logoff ends a session. See [MS-SMB2] 3.3.5.6.
func (r *request) logoff() ntstatus.Status {
	if !r.decode(&smb2msg.LogoffRequest{}) {
		return ntstatus.InvalidParameter
	}
	r.x.c.forget(r.session)
	r.session.end()
	return r.reply(&smb2msg.LogoffResponse{})
}

// end closes all that is open in a session.
func (s *session) end() {
	s.c.forget(s)
	s.c.abandon(s)
	s.closeOpens(func(*open) bool { return true })
}

// closeOpens closes the opens that match.
func (s *session) closeOpens(match func(*open) bool) {
	s.mu.Lock()
	var gone []*open
	for id, o := range s.opens {
		if match(o) {
			gone = append(gone, o)
			delete(s.opens, id)
		}
	}
	s.mu.Unlock()
	for _, o := range gone {
		s.c.closing(o)
		o.close()
	}
}

func (s *session) tree(id uint32) *tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trees[id]
}

// open finds an open file.
func (s *session) open(id smb2msg.FileID) *open {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id.Persistent != id.Volatile {
		return nil
	}
	return s.opens[id.Volatile]
}

// treeConnect connects to a share. See [MS-SMB2] 3.3.5.7.
func (r *request) treeConnect() ntstatus.Status {
	var m smb2msg.TreeConnectRequest
	if !r.decode(&m) {
		return ntstatus.InvalidParameter
	}
	// \\server\share; which server it is does not matter.
	parts := strings.Split(strings.TrimPrefix(m.Path, `\\`), `\`)
	if len(parts) != 2 || !strings.HasPrefix(m.Path, `\\`) {
		return ntstatus.BadNetworkName
	}
	share := r.x.c.srv.share(parts[1])
	if share == nil {
		return ntstatus.BadNetworkName
	}
	if share.Seal && r.session.sealer == nil {
		return ntstatus.AccessDenied
	}
	reply := smb2msg.TreeConnectResponse{
		ShareType: smb2msg.ShareTypeDisk, ShareFlags: smb2msg.ShareFlagManualCaching, MaximalAccess: share.access(),
	}
	if share.Tree == nil {
		reply.ShareType = smb2msg.ShareTypePipe
	}
	if share.Seal {
		reply.ShareFlags |= smb2msg.ShareFlagEncryptData
	}
	r.session.mu.Lock()
	r.session.lastTree++
	r.tree = &tree{r.session.lastTree, share}
	r.session.trees[r.tree.id] = r.tree
	r.session.mu.Unlock()
	r.hdr.TreeID = r.tree.id
	return r.reply(&reply)
}

// treeDisconnect lets go of a share. See [MS-SMB2] 3.3.5.8.
func (r *request) treeDisconnect() ntstatus.Status {
	if !r.decode(&smb2msg.TreeDisconnectRequest{}) {
		return ntstatus.InvalidParameter
	}
	r.session.mu.Lock()
	delete(r.session.trees, r.tree.id)
	r.session.mu.Unlock()
	r.session.closeOpens(func(o *open) bool { return o.tree == r.tree })
	return r.reply(&smb2msg.TreeDisconnectResponse{})
}
