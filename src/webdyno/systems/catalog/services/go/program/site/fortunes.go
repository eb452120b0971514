package site

import (
	"cmp"
	"context"
	_ "embed" // for the page
	"html/template"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"
)

//go:embed fortunes.html
var fortunesHTML string

var fortunesPage = template.Must(template.New("fortunes").Parse(fortunesHTML))

// Fortune is a row of that table.
type Fortune struct {
	ID      int32
	Message string
}

// WriteFortunes writes the page of all fortunes and an additional one.
func (store *Store) WriteFortunes(ctx context.Context, to io.Writer) error {
	rows, err := store.pool.Query(ctx, "SELECT id, message FROM fortune")
	if err != nil {
		return err
	}
	fortunes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Fortune])
	if err != nil {
		return err
	}
	fortunes = append(fortunes, Fortune{0, "Additional fortune added at request time."})
	slices.SortFunc(fortunes, func(a, b Fortune) int { return cmp.Compare(a.Message, b.Message) })
	return fortunesPage.Execute(to, fortunes)
}
