package server

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"berth/static"
)

// route is one address: how, where, who, and what answers.
type route struct {
	method, path string
	need         need
	handler      echo.HandlerFunc
}

// routes is every address of the portal but those of nodes and sockets
// (linkRoutes) and of the API (newAPI). A test knows each with who may call it,
// and fails for a new one
// until it is told.
func (s *Server) routes() []route {
	const get, post = http.MethodGet, http.MethodPost
	assets := echo.WrapHandler(static.Handler())
	return []route{
		{get, "/healthz", anyone, s.healthz},
		{get, "/readyz", anyone, s.readyz},
		{get, "/metrics", anyone, s.showMetrics}, // asks more itself
		{get, "/assets/*", anyone, assets},
		{post, webhookPath, anyone, s.stripeWebhook}, // signed by the payment provider

		{get, "/signup", anyone, s.signupPage},
		{post, "/signup", anyone, s.signup},
		{get, "/login", anyone, s.loginPage},
		{post, "/login", anyone, s.login},
		{post, "/logout", anyone, s.logout},
		{post, "/theme", anyone, s.setTheme},

		{get, "/", anyone, s.catalogue},
		{get, "/launch", mayView, s.launchPage},
		{post, "/launch/price", mayView, s.launchPrice},
		{post, "/launch", mayRun, s.launch},

		{get, "/instances", mayView, s.instances},
		{post, "/instances/stop", mayRun, s.stopMany},
		{get, "/instances/live", mayView, s.instancesLive},
		{get, "/instances/:id", mayView, s.instancePage},
		{post, "/instances/:id/stop", mayRun, s.stop},
		{post, "/instances/:id/start", mayRun, s.start},
		{post, "/instances/:id/restart", mayRun, s.restart},
		{post, "/instances/:id/terminate", mayRun, s.terminate},
		{get, "/instances/:id/live", mayView, s.instanceLive},
		{get, "/instances/:id/terminal/socket", mayRun, s.instanceTerminal},
		{get, "/instances/:id/logs", mayView, s.logsPage},
		{get, "/instances/:id/terminal", mayRun, s.terminalPage},

		{get, "/wallet", mayView, s.wallet},
		{post, "/wallet/topups", mayPay, s.topUp},
		{get, "/invoices", mayView, s.invoices},
		{get, "/invoices/:id", mayView, s.invoice},

		{get, "/account", mayView, s.account},
		{post, "/account/sessions/revoke-all", mayView, s.revokeSessions},
		{post, "/account/sessions/:id/revoke", mayView, s.revokeSession},
		{post, "/account/password", mayView, s.changePassword},
		{post, "/account/tokens", mayView, s.newToken},
		{post, "/account/tokens/:id/revoke", mayView, s.revokeToken},

		{get, "/live", mayView, s.live},

		{get, "/fleet", mayOperate, s.fleetPage},
		{post, "/fleet/join-tokens", mayOperate, s.joinToken},
		{get, "/fleet/accounts", mayOperate, s.accounts},
		{post, "/accounts/:id/close-invoice", mayOperate, s.closeInvoice},
		{get, "/fleet/live", mayOperate, s.fleetLive},
		{get, "/fleet/:id", mayOperate, s.nodePage},
		{get, "/fleet/:id/live", mayOperate, s.nodeLive},
		{get, "/fleet/:id/devices/:uuid", mayOperate, s.devicePage},
		{get, "/fleet/:id/devices/:uuid/live", mayOperate, s.deviceLive},
		{post, "/fleet/:id/cordon", mayOperate, s.cordon},
		{post, "/fleet/:id/uncordon", mayOperate, s.uncordon},
		{post, "/fleet/:id/maintenance", mayOperate, s.maintain},
		{post, "/fleet/:id/maintenance/end", mayOperate, s.endMaintenance},
		{post, "/fleet/:id/retire", mayOperate, s.retire},
		{get, "/fleet/:id/devices/:uuid/layout", mayOperate, s.cardLayoutPage},
		{post, "/fleet/:id/devices/:uuid/layout", mayOperate, s.setCardLayout},
		{post, "/fleet/:id/devices/:uuid/sharing", mayOperate, s.setCardSharing},
		{get, "/prices", mayOperate, s.prices},
		{post, "/prices", mayOperate, s.setPrice},
	}
}
