use crate::store::{Error, Store};
use futures_util::future::try_join_all;
use serde::Serialize;
use tokio_postgres::{Client, Statement};

const READ: &str = "SELECT id, randomnumber FROM world WHERE id = $1";
const UPDATE: &str = "UPDATE world SET randomnumber = $2 WHERE id = $1";

/// A row of that table.
#[derive(Serialize)]
pub struct World {
    id: i32,
    #[serde(rename = "randomNumber")]
    random_number: i32,
}

/// The number of queries that a request asks for.
pub fn count(text: Option<&str>) -> usize {
    text.and_then(|text| text.parse::<i64>().ok()).unwrap_or(1).clamp(1, 500) as usize
}

fn random() -> i32 {
    rand::random_range(1..=10_000)
}

impl Store {
    /// Reads a random row.
    pub async fn world(&self) -> Result<World, Error> {
        let client = self.client().await?;
        let statement = client.prepare_cached(READ).await?;
        read(&client, &statement).await
    }

    /// Reads that many random rows, a statement each; they are pipelined.
    pub async fn worlds(&self, count: usize) -> Result<Vec<World>, Error> {
        let client = self.client().await?;
        let statement = client.prepare_cached(READ).await?;
        try_join_all((0..count).map(|_| read(&client, &statement))).await
    }

    /// Reads that many random rows and writes a new number into each.
    pub async fn update_worlds(&self, count: usize) -> Result<Vec<World>, Error> {
        let mut client = self.client().await?;
        let statement = client.prepare_cached(READ).await?;
        let mut worlds = try_join_all((0..count).map(|_| read(&client, &statement))).await?;
        // Transactions that lock rows in the same order can't block each other.
        worlds.sort_by_key(|world| world.id);
        for world in &mut worlds {
            world.random_number = random();
        }
        let statement = client.prepare_cached(UPDATE).await?;
        let transaction = client.transaction().await?;
        let update = |world| write(&transaction, &statement, world);
        try_join_all(worlds.iter().map(update)).await?;
        transaction.commit().await?;
        Ok(worlds)
    }
}

async fn read(client: &Client, statement: &Statement) -> Result<World, Error> {
    let row = client.query_one(statement, &[&random()]).await?;
    Ok(World { id: row.get(0), random_number: row.get(1) })
}

async fn write(
    transaction: &tokio_postgres::Transaction<'_>,
    statement: &Statement,
    world: &World,
) -> Result<u64, tokio_postgres::Error> {
    transaction.execute(statement, &[&world.id, &world.random_number]).await
}
