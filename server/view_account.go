package server

import (
	"strings"
	"time"

	"berth/models"
	"berth/web"
)

// accountView draws who one is, where one is signed in, and one's tokens.
func accountView(id identity, sessions []models.Session, tokens []models.Token, at models.Instant) web.AccountView {
	zone := zoneOf(id.Account)
	v := web.AccountView{Name: id.User.Name, Email: id.User.Email, Account: id.Account.Name, Role: roleName(id.Role)}
	for _, s := range sessions {
		v.Sessions = append(v.Sessions, web.SessionRow{ID: s.IDHash, Agent: browserName(s.UserAgent), Address: s.Address,
			Created: dayTime(s.CreatedAt, zone), LastSeen: seen(s, id.Session, at, zone), Current: s.IDHash == id.Session})
	}
	for _, t := range tokens {
		v.Tokens = append(v.Tokens, web.TokenRow{ID: string(t.ID), Name: t.Name, Created: dayTime(t.CreatedAt, zone), LastUsed: ago(t.LastUsedAt, at, zone)})
	}
	return v
}

func seen(s models.Session, current string, at models.Instant, zone *time.Location) string {
	if s.IDHash == current {
		return "now"
	}
	return ago(s.SeenAt, at, zone)
}

// browserName says in words what a User-Agent header claims.
func browserName(agent string) string {
	name := ""
	for _, b := range []struct{ mark, name string }{
		{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}, {"Go-http-client", "a Go program"}, {"python", "a Python program"},
	} {
		if strings.Contains(agent, b.mark) {
			name = b.name
			break
		}
	}
	system := ""
	for _, o := range []struct{ mark, name string }{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"Mac OS", "Mac"}, {"Linux", "Linux"},
	} {
		if strings.Contains(agent, o.mark) {
			system = o.name
			break
		}
	}
	switch {
	case name == "" && system == "":
		return "An unknown program"
	case name == "":
		return "A browser on " + system
	case system == "":
		return name
	}
	return name + " on " + system
}
