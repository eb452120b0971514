package site

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

const itemsPerPage = 20

// Item is a row of that table.
type Item struct {
	ID      int32  `json:"id"`
	Name    string `json:"name"`
	Price   int32  `json:"price"`
	Version int32  `json:"version"`
}

// Tag gives what is different for each version of an item.
func (item Item) Tag() string {
	return fmt.Sprintf(`"%d"`, item.Version)
}

// Items is one page of the list of items.
type Items struct {
	Page  int    `json:"page"`
	Pages int    `json:"pages"`
	Total int    `json:"total"`
	Items []Item `json:"items"`
}

// NewItem is what clients send of an item.
type NewItem struct {
	Name  string `json:"name"`
	Price *int32 `json:"price"`
}

// ParseNewItem reads what a client sent, or says what is wrong with it.
func ParseNewItem(body []byte) (NewItem, error) {
	var item NewItem
	if err := json.Unmarshal(body, &item); err != nil {
		return item, errors.New("not a JSON object with name and price")
	}
	if length := utf8.RuneCountInString(item.Name); length < 1 || length > 100 {
		return item, errors.New("name must have 1 to 100 characters")
	}
	if item.Price == nil || *item.Price < 0 {
		return item, errors.New("price must be a whole number, 0 or more")
	}
	return item, nil
}

// ParseID reads an item's id.
func ParseID(text string) (int32, error) {
	id, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, ErrNotFound
	}
	return int32(id), nil
}

// PageNumber reads the number of a page, from 1.
func PageNumber(text string) int {
	page, _ := strconv.ParseInt(text, 10, 32) // 0 if it is no number
	return int(max(page, 1))
}

// Items reads a page of the list.
func (store *Store) Items(ctx context.Context, page int) (Items, error) {
	list := Items{Page: page}
	err := store.pool.QueryRow(ctx, "SELECT count(*) FROM item").Scan(&list.Total)
	if err != nil {
		return list, err
	}
	list.Pages = (list.Total + itemsPerPage - 1) / itemsPerPage
	rows, err := store.pool.Query(
		ctx,
		"SELECT id, name, price, version FROM item ORDER BY id LIMIT $1 OFFSET $2",
		itemsPerPage, (page-1)*itemsPerPage,
	)
	if err != nil {
		return list, err
	}
	list.Items, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Item])
	return list, err
}

// Item reads one.
func (store *Store) Item(ctx context.Context, id int32) (Item, error) {
	return store.one(ctx, "SELECT id, name, price, version FROM item WHERE id = $1", id)
}

// AddItem adds one.
func (store *Store) AddItem(ctx context.Context, item NewItem) (Item, error) {
	return store.one(
		ctx,
		"INSERT INTO item (name, price) VALUES ($1, $2) RETURNING id, name, price, version",
		item.Name, *item.Price,
	)
}

// UpdateItem changes one.
func (store *Store) UpdateItem(ctx context.Context, id int32, item NewItem) (Item, error) {
	return store.one(
		ctx,
		`UPDATE item SET name = $2, price = $3, version = version + 1 WHERE id = $1
		RETURNING id, name, price, version`,
		id, item.Name, *item.Price,
	)
}

// DeleteItem removes one.
func (store *Store) DeleteItem(ctx context.Context, id int32) error {
	done, err := store.pool.Exec(ctx, "DELETE FROM item WHERE id = $1", id)
	if err == nil && done.RowsAffected() == 0 {
		return ErrNotFound
	}
	return err
}

func (store *Store) one(ctx context.Context, statement string, arguments ...any) (Item, error) {
	rows, err := store.pool.Query(ctx, statement, arguments...)
	if err != nil {
		return Item{}, err
	}
	item, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Item])
	if errors.Is(err, pgx.ErrNoRows) {
		return item, ErrNotFound
	}
	return item, err
}
