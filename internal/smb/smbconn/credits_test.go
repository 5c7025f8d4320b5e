package smbconn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// claims starts takers one after another, each waiting before the next comes.
func claims(ctx context.Context, c *credits, wants ...[2]int) []chan [2]int {
	var out []chan [2]int
	for _, w := range wants {
		ch := make(chan [2]int, 1)
		out = append(out, ch)
		go func() {
			got, first, err := c.take(ctx, w[0], w[1])
			if err != nil {
				got = -1
			}
			ch <- [2]int{got, int(first)}
		}()
		synctest.Wait()
	}
	return out
}

func expect(t *testing.T, name string, ch chan [2]int, got, first int) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-ch:
		if r != [2]int{got, first} {
			t.Errorf("%s: got %d credits from message %d, want %d from %d", name, r[0], r[1], got, first)
		}
	default:
		t.Errorf("%s: still waiting, want %d credits", name, got)
	}
}

func waits(t *testing.T, name string, ch chan [2]int) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-ch:
		t.Errorf("%s: got %d credits, want it to wait", name, r[0])
	default:
	}
}

func TestCreditsServeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &credits{balance: 8}
		q := claims(t.Context(), c, [2]int{6, 6}, [2]int{8, 8}, [2]int{1, 1})
		expect(t, "first", q[0], 6, 0)
		waits(t, "large", q[1])
		waits(t, "small behind large", q[2]) // two credits are there, but it is not its turn
		c.answered(6, 7)
		expect(t, "large", q[1], 8, 6)
		expect(t, "small", q[2], 1, 14)
	})
}

func TestCreditsShrinkWhenThereAreNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &credits{balance: 1}
		q := claims(t.Context(), c, [2]int{16, 1})
		expect(t, "16 wanted of 1", q[0], 1, 0)
		q = claims(t.Context(), c, [2]int{16, 1})
		waits(t, "none left", q[0])
		c.answered(1, 4)
		expect(t, "16 wanted of 4", q[0], 4, 1)
	})
}

func TestCreditsWaitForThoseThatComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &credits{balance: 4}
		q := claims(t.Context(), c, [2]int{3, 1}, [2]int{4, 1})
		expect(t, "first", q[0], 3, 0)
		waits(t, "all four, three of which are out", q[1])
		c.answered(3, 3)
		expect(t, "all four", q[1], 4, 3)
	})
}

func TestCreditsStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &credits{balance: 1}
		q := claims(t.Context(), c, [2]int{1, 1}, [2]int{1, 1})
		expect(t, "first", q[0], 1, 0)
		c.answered(1, 0)
		expect(t, "after the last credit was taken away", q[1], -1, 0)
		if _, _, err := c.take(t.Context(), 1, 1); !errors.Is(err, ErrCredits) {
			t.Errorf("take on a starved connection: %v, want %v", err, ErrCredits)
		}
	})
}

// TestCreditsThatNeverSuffice asks for more than there are, while some are out:
// their replies bring as many back, so there is no point in waiting.
func TestCreditsThatNeverSuffice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &credits{balance: 2}
		q := claims(t.Context(), c, [2]int{1, 1}, [2]int{3, 3}, [2]int{2, 2})
		expect(t, "first", q[0], 1, 0)
		expect(t, "three of two", q[1], -1, 0)
		waits(t, "two", q[2])
		c.answered(1, 0) // the server takes one away
		expect(t, "two of one", q[2], -1, 0)
		if _, _, err := c.take(t.Context(), 3, 3); !errors.Is(err, ErrCredits) {
			t.Errorf("three of one: %v, want %v", err, ErrCredits)
		}
	})
}

func TestCreditsCancelledClaimMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &credits{balance: 4}
		q := claims(t.Context(), c, [2]int{3, 3})
		expect(t, "first", q[0], 3, 0)
		ctx, cancel := context.WithCancel(t.Context())
		large := claims(ctx, c, [2]int{4, 4})
		small := claims(t.Context(), c, [2]int{1, 1})
		waits(t, "small", small[0])
		cancel()
		expect(t, "large, cancelled", large[0], -1, 0)
		expect(t, "small", small[0], 1, 3)
	})
}

func TestCreditsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &credits{balance: 0, out: 1}
		q := claims(t.Context(), c, [2]int{1, 1})
		c.fail(ErrDisconnected)
		expect(t, "waiting", q[0], -1, 0)
		if _, _, err := c.take(t.Context(), 1, 1); !errors.Is(err, ErrDisconnected) {
			t.Errorf("take after fail: %v, want %v", err, ErrDisconnected)
		}
	})
}

func TestCreditRequestAsksForWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		credits *credits
		charge  int
		want    uint16
	}{
		{&credits{balance: 1, target: 100}, 1, 100},
		{&credits{balance: 50, out: 50, target: 100}, 16, 16},
		{&credits{balance: 150, target: 100}, 1, 1},
		{&credits{balance: 1, target: 1 << 20}, 1, 0xFFFF},
	} {
		if got := c.credits.request(c.charge); got != c.want {
			t.Errorf("%d + %d of %d credits, charge %d: asked for %d, want %d",
				c.credits.balance, c.credits.out, c.credits.target, c.charge, got, c.want)
		}
	}
}
