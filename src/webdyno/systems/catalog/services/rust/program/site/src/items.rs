use crate::store::{Error, Store};
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;

const PER_PAGE: i64 = 20;

/// A row of that table.
#[derive(Serialize)]
pub struct Item {
    pub id: i32,
    name: String,
    price: i32,
    version: i32,
}

/// One page of the list of items.
#[derive(Serialize)]
pub struct Items {
    page: i64,
    pages: i64,
    total: i64,
    items: Vec<Item>,
}

/// What clients send of an item.
#[derive(Deserialize)]
pub struct NewItem {
    name: String,
    price: i32,
}

impl Item {
    /// What is different for each version of an item.
    pub fn tag(&self) -> String {
        format!("\"{}\"", self.version)
    }

    fn of(row: &Row) -> Self {
        Self { id: row.get(0), name: row.get(1), price: row.get(2), version: row.get(3) }
    }
}

impl NewItem {
    /// Reads what a client sent, or says what is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Error> {
        let Ok(item) = serde_json::from_slice::<Self>(body) else {
            return Err(Error::Invalid("not a JSON object with name and whole price"));
        };
        if !(1..=100).contains(&item.name.chars().count()) {
            return Err(Error::Invalid("name must have 1 to 100 characters"));
        }
        if item.price < 0 {
            return Err(Error::Invalid("price must be 0 or more"));
        }
        Ok(item)
    }
}

/// Reads an item's id.
pub fn parse_id(text: &str) -> Result<i32, Error> {
    text.parse().map_err(|_| Error::NotFound)
}

/// The number of a page, from 1.
pub fn page_number(text: Option<&str>) -> i64 {
    text.and_then(|text| text.parse::<i32>().ok()).unwrap_or(1).max(1).into()
}

impl Store {
    /// Reads a page of the list.
    pub async fn items(&self, page: i64) -> Result<Items, Error> {
        let total: i64 = self.row("SELECT count(*) FROM item", &[]).await?.get(0);
        let statement = "SELECT id, name, price, version FROM item ORDER BY id LIMIT $1 OFFSET $2";
        let rows = self.rows(statement, &[&PER_PAGE, &((page - 1) * PER_PAGE)]).await?;
        let pages = (total + PER_PAGE - 1) / PER_PAGE;
        Ok(Items { page, pages, total, items: rows.iter().map(Item::of).collect() })
    }

    /// Reads one.
    pub async fn item(&self, id: i32) -> Result<Item, Error> {
        let statement = "SELECT id, name, price, version FROM item WHERE id = $1";
        Ok(Item::of(&self.row(statement, &[&id]).await?))
    }

    /// Adds one.
    pub async fn add_item(&self, item: NewItem) -> Result<Item, Error> {
        let statement =
            "INSERT INTO item (name, price) VALUES ($1, $2) RETURNING id, name, price, version";
        Ok(Item::of(&self.row(statement, &[&item.name, &item.price]).await?))
    }

    /// Changes one.
    pub async fn update_item(&self, id: i32, item: NewItem) -> Result<Item, Error> {
        let statement = "UPDATE item SET name = $2, price = $3, version = version + 1 WHERE id = $1
            RETURNING id, name, price, version";
        Ok(Item::of(&self.row(statement, &[&id, &item.name, &item.price]).await?))
    }

    /// Removes one.
    pub async fn delete_item(&self, id: i32) -> Result<(), Error> {
        self.row("DELETE FROM item WHERE id = $1 RETURNING id", &[&id]).await?;
        Ok(())
    }
}
