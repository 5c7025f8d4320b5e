package auth

import (
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"strings"
)

var errTooEarly = errors.New("SPNEGO: the server was done before it had proof")

// Initiator is the client's side of a SPNEGO negotiation. It offers one mechanism,
// the first of its own that the server hints at, so what the server could be
// made to choose is that one. See RFC 4178 4 and [MS-SPNG] 3.2.
type Initiator struct {
	mech     Mechanism
	mechList []byte // as offered, for MICs
	started  bool
	mechDone bool
	done     bool
}

// NewInitiator picks from mechs, in order of preference, by the hint in a server's
// first message. A server without a hint is tried with the first.
func NewInitiator(hint []byte, mechs ...Mechanism) (*Initiator, error) {
	mech := mechs[0]
	if len(hint) > 0 {
		var t negTokenInit
		if err := t.Decode(hint); err != nil {
			return nil, fmt.Errorf("server's security hint: %w", err)
		}
		i := slices.IndexFunc(mechs, func(m Mechanism) bool { return hasMech(t.mechTypes, m.OID()) })
		if i < 0 {
			var ours []string
			for _, m := range mechs {
				ours = append(ours, mechName(m.OID()))
			}
			return nil, fmt.Errorf("no common security mechanism: the server offers %s, this client %s",
				mechNamesOf(t.mechTypes), strings.Join(ours, ", "))
		}
		mech = mechs[i]
	}
	return &Initiator{mech: mech, mechList: mechTypeList([]asn1.ObjectIdentifier{mech.OID()})}, nil
}

func hasMech(mechs []asn1.ObjectIdentifier, oid asn1.ObjectIdentifier) bool {
	return slices.ContainsFunc(mechs, oid.Equal)
}

func mechNamesOf(mechs []asn1.ObjectIdentifier) string {
	if len(mechs) == 0 {
		return "none"
	}
	var names []string
	for _, m := range mechs {
		names = append(names, mechName(m))
	}
	return strings.Join(names, ", ")
}

// SessionKey is the mechanism's, once Next is done.
func (i *Initiator) SessionKey() []byte { return i.mech.SessionKey() }

// Next takes in the server's token, none at the start, and returns the one to
// send. It is done when it has seen that the server is. A server whose protocol
// has said so already may leave out the last token.
func (i *Initiator) Next(token []byte) (out []byte, done bool, err error) {
	if i.done {
		return nil, true, errors.New("SPNEGO: a token after the last one")
	}
	if !i.started {
		i.started = true
		first := negTokenInit{mechTypes: []asn1.ObjectIdentifier{i.mech.OID()}}
		if first.mechToken, i.mechDone, err = i.mech.Next(nil); err != nil {
			return nil, false, err
		}
		return first.Append(nil), false, nil
	}
	if len(token) == 0 {
		if !i.mechDone {
			return nil, false, errTooEarly
		}
		i.done = true
		return nil, true, nil
	}
	var t negTokenResp
	if err := t.Decode(token); err != nil {
		return nil, false, err
	}
	if t.state == stateReject {
		return nil, false, ErrLogon
	}
	if t.supportedMech != nil && !t.supportedMech.Equal(i.mech.OID()) {
		return nil, false, fmt.Errorf("SPNEGO: the server wants %s, this client offered %s",
			mechName(t.supportedMech), mechName(i.mech.OID()))
	}
	answer := negTokenResp{state: stateNone}
	if len(t.responseToken) > 0 {
		if answer.responseToken, i.mechDone, err = i.mech.Next(t.responseToken); err != nil {
			return nil, false, err
		}
		if i.mechDone {
			answer.mechListMIC = i.mech.MIC(i.mechList)
		}
	}
	if t.state == stateCompleted && (!i.mechDone || len(answer.responseToken) > 0) {
		return nil, false, errTooEarly
	}
	if len(t.mechListMIC) > 0 {
		if !i.mechDone {
			return nil, false, errSPNEGO
		}
		if err := i.mech.VerifyMIC(i.mechList, t.mechListMIC); err != nil {
			return nil, false, err
		}
	}
	if t.state == stateCompleted {
		i.done = true
	}
	if len(answer.responseToken) == 0 && len(answer.mechListMIC) == 0 {
		return nil, i.done, nil
	}
	return answer.Append(nil), i.done, nil
}

// Hint is what a server with NTLM puts into its first message.
func Hint() []byte {
	return (&negTokenInit{
		mechTypes: []asn1.ObjectIdentifier{oidNTLMSSP},
		hint:      "not_defined_in_RFC4178@please_ignore",
	}).Append(nil)
}

// Acceptor is the server's side of a SPNEGO negotiation with one mechanism.
type Acceptor struct {
	mech     Mechanism
	mechList []byte // as the client offered it
	started  bool
	needMIC  bool // the client would rather have had another mechanism
	done     bool
}

// NewAcceptor returns the start of a negotiation.
func NewAcceptor(mech Mechanism) *Acceptor { return &Acceptor{mech: mech} }

// SessionKey is the mechanism's, once Next is done.
func (a *Acceptor) SessionKey() []byte { return a.mech.SessionKey() }

// Next takes in a client's token and returns the one to answer with. It is done
// when the client has proved what it had to.
func (a *Acceptor) Next(token []byte) (out []byte, done bool, err error) {
	if a.done {
		return nil, true, errors.New("SPNEGO: a token after the last one")
	}
	answer := negTokenResp{state: stateIncomplete}
	if !a.started {
		var t negTokenInit
		if err := t.Decode(token); err != nil {
			return nil, false, err
		}
		if !hasMech(t.mechTypes, a.mech.OID()) {
			return nil, false, fmt.Errorf("SPNEGO: the client offers %s, this server %s",
				mechNamesOf(t.mechTypes), mechName(a.mech.OID()))
		}
		a.started = true
		a.mechList = mechTypeList(t.mechTypes)
		answer.supportedMech = a.mech.OID()
		if !t.mechTypes[0].Equal(a.mech.OID()) {
			// What token there is belongs to another mechanism.
			a.needMIC = true
			answer.state = stateRequestMIC
			return answer.Append(nil), false, nil
		}
		token = t.mechToken
		if answer.responseToken, _, err = a.mech.Next(token); err != nil {
			return nil, false, err
		}
		return answer.Append(nil), false, nil
	}
	var t negTokenResp
	if err := t.Decode(token); err != nil {
		return nil, false, err
	}
	if answer.responseToken, a.done, err = a.mech.Next(t.responseToken); err != nil {
		return nil, false, err
	}
	if !a.done {
		return answer.Append(nil), false, nil
	}
	answer.state = stateCompleted
	if len(t.mechListMIC) > 0 {
		if err := a.mech.VerifyMIC(a.mechList, t.mechListMIC); err != nil {
			a.done = false
			return nil, false, err
		}
		answer.mechListMIC = a.mech.MIC(a.mechList)
	} else if a.needMIC && a.mech.SessionKey() != nil {
		a.done = false
		return nil, false, ErrMIC
	}
	return answer.Append(nil), true, nil
}
