package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"berth/api"
	"berth/models"
	"berth/models/store"
)

func (a *restAPI) accountOperations() {
	operate(a, mayView, huma.Operation{OperationID: "me", Method: http.MethodGet, Path: "/me", Summary: "Who you are"},
		func(_ context.Context, who caller, _ *empty) (*one[api.Me], error) {
			return oneOf(meJSON(who.identity)), nil
		})
	operate(a, mayView, huma.Operation{OperationID: "list-tokens", Method: http.MethodGet, Path: "/tokens", Summary: "Your API tokens"}, a.listTokens)
	operate(a, mayView, huma.Operation{OperationID: "create-token", Method: http.MethodPost, Path: "/tokens", Summary: "Make an API token", DefaultStatus: http.StatusCreated}, a.createToken)
	operate(a, mayView, huma.Operation{OperationID: "revoke-token", Method: http.MethodDelete, Path: "/tokens/{id}", Summary: "Revoke a token at once", DefaultStatus: http.StatusNoContent}, a.revokeToken)
}

func meJSON(id identity) api.Me {
	me := api.Me{Role: string(id.Role), Operator: id.Operator}
	me.User.ID, me.User.Email, me.User.Name = string(id.User.ID), id.User.Email, id.User.Name
	me.Account.ID, me.Account.Name, me.Account.Currency = string(id.Account.ID), id.Account.Name, id.Account.Currency
	return me
}

func tokenJSON(t models.Token) api.Token {
	return api.Token{ID: string(t.ID), Name: t.Name, CreatedAt: t.CreatedAt.Time(), LastUsedAt: timeJSON(t.LastUsedAt)}
}

func (a *restAPI) listTokens(ctx context.Context, who caller, _ *empty) (*list[api.Token], error) {
	var tokens []models.Token
	err := a.store.View(ctx, func(tx *store.Tx) (err error) {
		tokens, err = tx.Tokens(who.Account.ID, who.User.ID)
		return err
	})
	return listOf(tokens, "", tokenJSON), err
}

func (a *restAPI) createToken(ctx context.Context, who caller, in *struct{ Body api.NewToken }) (*one[api.Token], error) {
	name := strings.TrimSpace(in.Body.Name)
	if wrong := tokenNameWrong(name); wrong != "" {
		return nil, models.Fieldset{"name": wrong}.Problem()
	}
	var token models.Token
	var secret string
	err := a.store.InTx(ctx, func(tx *store.Tx) (err error) {
		secret, token, err = createToken(tx, who.User.ID, who.Account.ID, name, a.now())
		return err
	})
	if err != nil {
		return nil, err
	}
	out := tokenJSON(token)
	out.Token = secret
	return oneOf(out), nil
}

func (a *restAPI) revokeToken(ctx context.Context, who caller, in *ByID) (*empty, error) {
	return &empty{}, a.store.InTx(ctx, func(tx *store.Tx) error {
		return tx.RevokeToken(who.Account.ID, who.User.ID, models.TokenID(in.ID))
	})
}
