package main

import "testing"

func TestCryptoCost(t *testing.T) {
	if got := cryptoCost("", ""); got != 0 {
		t.Errorf("cost of nothing %g, want 0", got)
	}
	cost := func(signing, sealing string) float64 {
		c := cryptoCost(signing, sealing)
		// From a slow emulator to 100 GB/s.
		if c < 1e-11 || c > 1e-6 {
			t.Errorf("cost of %q, %q is %g s/byte, want one that a computer can have", signing, sealing, c)
		}
		return c
	}
	cost("HMAC-SHA256", "")
	cost("AES-CMAC", "")
	for _, sealing := range []string{"AES-128-GCM", "AES-256-GCM", "AES-128-CCM", "AES-256-CCM"} {
		cost("AES-CMAC", sealing)
	}
	if gmac, ccm := cost("AES-GMAC", ""), cost("", "AES-128-CCM"); gmac > ccm {
		t.Errorf("GMAC costs %g s/byte, CCM %g, want GMAC to be the cheaper", gmac, ccm)
	}
}
