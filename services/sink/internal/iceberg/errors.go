package iceberg

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
)

func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// translate classifies an error of the catalog or the warehouse. What it does not know may pass: nothing is applied in part, so a
// commit can be repeated.
func (p *place) translate(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	why := err.Error()
	if e, ok := errors.AsType[*restError](err); ok && !errors.Is(err, errMoved) {
		return fault.Wrap(err, e.code(), p.where+".catalog", why, "where", p.where+".catalog")
	}
	state := sqlState(err)
	switch {
	case state == "28P01" || state == "28000":
		return fault.Wrap(err, fault.SinkWrongPassword, p.where+".catalog", why, "where", p.where+".catalog")
	case state == "3D000":
		return fault.Wrap(err, fault.SinkNoDatabase, p.where+".catalog", why, "where", p.where+".catalog")
	case state == "42501":
		return fault.Wrap(err, fault.SinkMissingRight, p.where+".catalog", why, "where", p.where+".catalog")
	case state == "25006":
		return fault.Wrap(err, fault.SinkReadOnly, p.where+".catalog", why, "where", p.where+".catalog")
	case state == "55P03", state == "40001", state == "40P01", strings.Contains(why, "SQLITE_BUSY"), errors.Is(err, errMoved):
		return fault.Wrap(err, fault.SinkBusy, p.where, why, "where", p.where)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.SinkDisk, p.where, why)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return fault.Wrap(err, fault.SinkPathUnusable, p.where, why, "path", p.root)
	}
	return fault.Wrap(err, fault.SinkUnreachable, p.where, why, "where", p.where)
}

// code classifies what a REST catalog answers.
func (e *restError) code() fault.Code {
	switch {
	case e.status == http.StatusUnauthorized, e.kind == "invalid_client":
		return fault.SinkWrongPassword
	case e.status == http.StatusForbidden:
		return fault.SinkMissingRight
	case e.status == http.StatusTooManyRequests, e.status == http.StatusServiceUnavailable, e.status == http.StatusRequestTimeout, e.status == 419:
		return fault.SinkBusy
	case e.status == http.StatusNotImplemented, e.status >= http.StatusBadRequest && e.status < http.StatusInternalServerError:
		return fault.SinkCatalog
	}
	return fault.SinkUnreachable
}
