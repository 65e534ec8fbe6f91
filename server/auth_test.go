package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth/models"
	"berth/models/store"
)

func TestSignUpLogInLogOut(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	b.get("/signup").wants(t, http.StatusOK, `name="password"`)
	b.get("/wallet").leadsTo(t, "/login?next=%2Fwallet")
	res := b.post("/signup", "name", "Ada Keel", "email", "  Ada@Example.org ", "password", password, "next", "/wallet").leadsTo(t, "/wallet")
	cookie := res.Cookies()[0]
	if cookie.Name != "berth" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Secure {
		t.Errorf("cookie %+v", cookie)
	}
	b.get("/").wants(t, http.StatusOK, "nothing running")
	b.get("/login").leadsTo(t, "/")

	u, a := w.who("ada@example.org")
	if !strings.HasPrefix(u.PasswordHash, "$argon2id$v=19$m=19456,t=2,p=1$") || a.Name != "Ada Keel" || a.Currency != "USD" {
		t.Errorf("made %+v %+v", u, a)
	}
	if strings.Contains(w.log.String(), password) || strings.Contains(w.log.String(), cookie.Value) {
		t.Error("a secret is in the log")
	}

	b.post("/logout").leadsTo(t, "/login")
	b.get("/wallet").leadsTo(t, "/login?next=%2Fwallet")
	stolen := w.browser()
	stolen.head.Set("Cookie", "berth="+cookie.Value)
	stolen.get("/wallet").leadsTo(t, "/login?next=%2Fwallet")

	b.post("/login", "email", "ADA@example.org", "password", password).leadsTo(t, "/")
	b.get("/account").wants(t, http.StatusOK, "ada@example.org", "Owner")
}

func TestSignUpSaysWhatIsWrongAndKeepsWhatWasTyped(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct{ name, email, password, says string }{
		"no name":           {"", "ada@example.org", password, "Say how you want to be called."},
		"long name":         {strings.Repeat("a", 101), "ada@example.org", password, "at most 100"},
		"no e-mail":         {"Ada", "ada", password, "Write an e-mail address"},
		"e-mail with name":  {"Ada", "Ada <ada@example.org>", password, "Write an e-mail address"},
		"e-mail of 2 lines": {"Ada", "ada@example.org\r\nBcc: x@y.z", password, "Write an e-mail address"},
		"long e-mail":       {"Ada", strings.Repeat("a", 252) + "@b.c", password, "Write an e-mail address"},
		"short password":    {"Ada", "ada@example.org", "eleven byte", "12 characters or more"},
		"long password":     {"Ada", "ada@example.org", strings.Repeat("p", 1025), "at most 1,024"},
	} {
		t.Run(name, func(t *testing.T) {
			res := w.browser().post("/signup", "name", tc.name, "email", tc.email, "password", tc.password).wants(t, http.StatusUnprocessableEntity, tc.says)
			if len(tc.name) == 3 && !strings.Contains(res.body, `value="Ada"`) {
				t.Error("the name was not kept")
			}
			if strings.Contains(res.body, tc.password) {
				t.Error("the password was drawn")
			}
		})
	}
	w.must(w.store.View(context.Background(), func(tx *store.Tx) error {
		if list, _, err := tx.Accounts("", 10); err != nil || len(list) != 0 {
			t.Errorf("something was made: %v, %v", list, err)
		}
		return nil
	}))
}

// requestNumber is what differs between two answers that say the same.
var requestNumber = regexp.MustCompile(`[0-9a-f]{16,}`)

func TestNoAnswerTellsWhoHasAnAccount(t *testing.T) {
	w := newWorld(t)
	w.signUp("ada@example.org")
	same := func(known, unknown answer) {
		t.Helper()
		a := requestNumber.ReplaceAllString(known.body, "#")
		b := strings.ReplaceAll(requestNumber.ReplaceAllString(unknown.body, "#"), "eve@example.org", "ada@example.org")
		if known.StatusCode != unknown.StatusCode || a != b {
			t.Errorf("%d and %d differ:\n%s\n%s", known.StatusCode, unknown.StatusCode, mainPart(a), mainPart(b))
		}
	}
	wrong := w.browser().post("/login", "email", "ada@example.org", "password", "another password")
	wrong.wants(t, http.StatusUnauthorized, "do not belong together")
	same(wrong, w.browser().post("/login", "email", "eve@example.org", "password", "another password"))

	// A sign-up for an e-mail that has an account is a sign-in: it says what a
	// wrong one says, and succeeds with the right password.
	taken := w.browser().post("/signup", "name", "Eve", "email", "ada@example.org", "password", "another password")
	same(wrong, taken)
	w.browser().post("/signup", "name", "Ada", "email", "ada@example.org", "password", password).leadsTo(t, "/")

	// Neither does the time: both take one hash. The least of several tries is
	// compared, since the machine does other things too.
	least := func(email string) time.Duration {
		best := time.Hour
		for i := range 5 {
			b := w.browser()
			began := time.Now()
			b.post("/login", "email", fmt.Sprintf(email, i), "password", "another password").wants(t, http.StatusUnauthorized)
			best = min(best, time.Since(began))
		}
		return best
	}
	known, unknown := least("ada@example.org%.0d"), least("nobody%d@example.org")
	if unknown < known/4 {
		t.Errorf("an unknown e-mail is answered in %v, a known one in %v", unknown, known)
	}
}

func TestTriesAreLimitedWhateverHeadersSay(t *testing.T) {
	slow := Limits{Burst: 3, Every: time.Hour}
	w := newWorld(t, func(c *Config) { c.LoginPair = slow; c.Signup = slow })
	forged := func(i int) *browser {
		b := w.browser()
		b.head.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i))
		b.head.Set("X-Real-Ip", fmt.Sprintf("203.0.113.%d", i))
		b.head.Set("Forwarded", fmt.Sprintf("for=203.0.113.%d", i))
		return b
	}
	for i := range 3 {
		forged(i).post("/login", "email", "ada@example.org", "password", "another password").wants(t, http.StatusUnauthorized)
	}
	res := forged(9).post("/login", "email", "ada@example.org", "password", "another password").wants(t, http.StatusTooManyRequests)
	if res.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	// Signing up with it is the same try; another e-mail is another.
	forged(9).post("/login", "email", "bob@example.org", "password", "another password").wants(t, http.StatusUnauthorized)
	for i := range 3 {
		forged(i).post("/signup", "name", "A", "email", fmt.Sprintf("a%d@example.org", i), "password", password).leadsTo(t, "/")
	}
	forged(9).post("/signup", "name", "A", "email", "a9@example.org", "password", password).wants(t, http.StatusTooManyRequests)
}

func TestLimiterForgetsTheOldestOnly(t *testing.T) {
	l := newLimiter(Limits{Burst: 1, Every: time.Hour})
	at := time.Now()
	if _, ok := l.allow("victim", at); !ok {
		t.Fatal("the first try")
	}
	for i := range bucketsKept - 1 {
		l.allow(fmt.Sprint(i), at)
	}
	if wait, ok := l.allow("victim", at); ok || wait < 59*time.Minute {
		t.Errorf("forgotten too early: %v %v", wait, ok)
	}
	for i := range 3 * bucketsKept {
		l.allow(fmt.Sprint("x", i), at)
	}
	if n := len(l.young) + len(l.old); n > 2*bucketsKept {
		t.Errorf("%d buckets are held", n)
	}
	if networkOf("2001:db8::1") != networkOf("2001:db8::ffff") || networkOf("::ffff:192.0.2.1") != "192.0.2.1" {
		t.Error("one subscriber counts twice")
	}
}

func TestSessionIsNewAtEveryLogin(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	u, _ := url.Parse(w.url)
	first := b.http.Jar.Cookies(u)[0].Value
	b.post("/login", "email", "ada@example.org", "password", password).leadsTo(t, "/")
	second := b.http.Jar.Cookies(u)[0].Value
	if first == second {
		t.Fatal("the session stayed")
	}
	old := w.browser()
	old.head.Set("Cookie", "berth="+first)
	old.get("/wallet").leadsTo(t, "/login?next=%2Fwallet")
	// A planted one is not taken over.
	planted := w.browser()
	planted.http.Jar.SetCookies(u, []*http.Cookie{{Name: "berth", Value: "planted-by-somebody"}})
	planted.post("/login", "email", "ada@example.org", "password", password).leadsTo(t, "/")
	if planted.http.Jar.Cookies(u)[0].Value == "planted-by-somebody" {
		t.Error("a planted session was signed in")
	}
}

func TestRevokedMeansTheNextRequest(t *testing.T) {
	w := newWorld(t)
	here, there := w.signUp("ada@example.org"), w.browser()
	there.post("/login", "email", "ada@example.org", "password", password).leadsTo(t, "/")
	u, _ := w.who("ada@example.org")
	id := func(b *browser) string {
		at, _ := url.Parse(w.url)
		return hashSecret(b.http.Jar.Cookies(at)[0].Value)
	}
	here.get("/account").wants(t, http.StatusOK, "/account/sessions/"+id(there)+"/revoke")
	// Another user cannot end it.
	eve := w.signUp("eve@example.org")
	eve.post("/account/sessions/"+id(there)+"/revoke").wants(t, http.StatusNotFound)
	there.get("/account").wants(t, http.StatusOK)
	here.post("/account/sessions/"+id(there)+"/revoke").leadsTo(t, "/account")
	there.get("/account").leadsTo(t, "/login?next=%2Faccount")
	here.get("/account").wants(t, http.StatusOK, "Signed out there.")

	there.post("/login", "email", "ada@example.org", "password", password).leadsTo(t, "/")
	here.post("/account/sessions/revoke-all").leadsTo(t, "/login")
	there.get("/account").leadsTo(t, "/login?next=%2Faccount")
	w.must(w.store.View(context.Background(), func(tx *store.Tx) error {
		if list, err := tx.Sessions(u.ID, models.At(time.Now())); err != nil || len(list) != 0 {
			t.Errorf("left: %v, %v", list, err)
		}
		return nil
	}))
}

// newTokenText finds a token on the page that shows it once.
var newTokenText = regexp.MustCompile(`brt_[A-Za-z0-9_-]{43}`)

func TestTokenWorksUntilRevoked(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	b.post("/account/tokens", "name", " ").wants(t, http.StatusUnprocessableEntity, "A token needs a name")
	token := newTokenText.FindString(b.post("/account/tokens", "name", "laptop").wants(t, http.StatusCreated, "Copy it now").body)
	if strings.Contains(b.get("/account").wants(t, http.StatusOK, "laptop").body, token) {
		t.Error("the token is shown a second time")
	}
	script := w.browser()
	script.head = http.Header{"Authorization": {"Bearer " + token}, "Accept": {"application/json"}}
	script.get("/wallet").wants(t, http.StatusOK)
	id := regexp.MustCompile(`/account/tokens/(tok_[a-z0-9]+)/revoke`).FindStringSubmatch(b.get("/account").body)[1]
	w.signUp("eve@example.org").post("/account/tokens/"+id+"/revoke").wants(t, http.StatusNotFound)
	b.post("/account/tokens/"+id+"/revoke").leadsTo(t, "/account")
	script.get("/wallet").wants(t, http.StatusUnauthorized, `"code":"unauthorized"`)
	script.get("/").wants(t, http.StatusUnauthorized) // a bad token is refused on open pages too

	// A token in an address is refused with a hint, and its text is nowhere in the log.
	w.browser().get("/wallet?token="+token).wants(t, http.StatusBadRequest, "does not stay secret")
	if strings.Contains(w.log.String(), token) {
		t.Error("the token is in the log")
	}
}

func TestNextStaysHere(t *testing.T) {
	for in, want := range map[string]string{
		"/wallet": "/wallet", "/launch?sku=a100-80gb.1g.10gb": "/launch?sku=a100-80gb.1g.10gb", "": "-",
		"https://evil.example": "-", "//evil.example": "-", `/\evil.example`: "-", "/\t/evil.example": "-", "/\n/evil": "-",
		"javascript:alert(1)": "-", "wallet": "-", "/%zz": "-", "/" + strings.Repeat("a", 3000): "-", "\\/evil": "-",
	} {
		if got := localPath(in, "-"); got != want {
			t.Errorf("localPath(%q) = %q", in, got)
		}
	}
	w := newWorld(t)
	w.signUp("ada@example.org")
	w.browser().post("/login", "email", "ada@example.org", "password", password, "next", "//evil.example").leadsTo(t, "/")
	w.browser().post("/theme", "theme", "dark", "return", "https://evil.example").leadsTo(t, "/")
}

func TestTLSMakesCookiesStrict(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.BaseURL = "https://berth.example" })
	res := w.browser().post("/signup", "name", "Ada", "email", "ada@example.org", "password", password).leadsTo(t, "/")
	cookie := res.Cookies()[0]
	if cookie.Name != "__Host-berth" || !cookie.Secure || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("cookie %+v", cookie)
	}
	if res.Header.Get("Strict-Transport-Security") == "" {
		t.Error("no HSTS")
	}
}

func TestBootstrapMakesOneOperator(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	first, err := w.server.Bootstrap(ctx, "", false)
	w.must(err)
	if first.Email != "operator@berth.local" || len(first.Password) < 12 || !strings.HasPrefix(first.Token, "brt_") {
		t.Errorf("made %+v", first)
	}
	again, err := w.server.Bootstrap(ctx, first.Token, false)
	w.must(err)
	if again.Password != "" || again.Token != first.Token || again.Email != first.Email {
		t.Errorf("again %+v", again)
	}
	lost, err := w.server.Bootstrap(ctx, "", false)
	w.must(err)
	if lost.Password != "" || lost.Token == first.Token || lost.Token == "" {
		t.Errorf("with the file lost %+v", lost)
	}
	script := w.browser()
	for _, token := range []string{first.Token, lost.Token} {
		script.head.Set("Authorization", "Bearer "+token)
		script.get("/fleet").wants(t, http.StatusOK)
	}
	b := w.browser()
	b.post("/login", "email", first.Email, "password", first.Password).leadsTo(t, "/")
	renewed, err := w.server.Bootstrap(ctx, lost.Token, true)
	w.must(err)
	if renewed.Password == "" || renewed.Password == first.Password || renewed.Token != lost.Token {
		t.Errorf("with the password lost %+v", renewed)
	}
	b.get("/account").leadsTo(t, "/login?next=%2Faccount")
	b.post("/login", "email", first.Email, "password", first.Password).wants(t, http.StatusUnauthorized)
	b.post("/login", "email", first.Email, "password", renewed.Password).leadsTo(t, "/")
}

func TestChangeOfPassword(t *testing.T) {
	w := newWorld(t)
	here := w.signUp("ada@example.org")
	there := w.browser()
	there.post("/login", "email", "ada@example.org", "password", password).leadsTo(t, "/")
	const next = "an even longer pass phrase"
	here.post("/account/password", "current", password, "password", "short").wants(t, http.StatusUnprocessableEntity, "Use 12 characters or more.")
	here.post("/account/password", "current", "not my password", "password", next).wants(t, http.StatusUnprocessableEntity, "This is not your present password.")
	there.get("/account").wants(t, http.StatusOK)
	here.post("/account/password", "current", password, "password", next).leadsTo(t, "/account")
	here.get("/account").wants(t, http.StatusOK, "Your password is changed.")
	there.get("/account").leadsTo(t, "/login?next=%2Faccount")
	there.post("/login", "email", "ada@example.org", "password", password).wants(t, http.StatusUnauthorized)
	there.post("/login", "email", "ada@example.org", "password", next).leadsTo(t, "/")
	for range 20 { // whoever found an open browser cannot guess on
		if here.post("/account/password", "current", "a guess", "password", next).StatusCode == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("guesses are not limited")
}
