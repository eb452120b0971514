use crate::variable;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod};
use std::fmt;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row};

/// Reads and writes the database's tables.
#[derive(Clone)]
pub struct Store {
    pool: Pool,
}

/// Why a request can't be fulfilled.
#[derive(Debug)]
pub enum Error {
    NotFound,
    Invalid(&'static str),
    Internal(String),
}

impl Store {
    /// Connects to `DATABASE_URL` as soon as somebody asks; without that variable there is none.
    pub fn open() -> Result<Option<Self>, String> {
        let Ok(url) = std::env::var("DATABASE_URL") else {
            return Ok(None);
        };
        let config: Config = url.parse().map_err(|error| format!("DATABASE_URL: {error}"))?;
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = Pool::builder(Manager::from_config(config, NoTls, recycling))
            .max_size(variable("DB_POOL")?)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Some(Self { pool }))
    }

    pub(crate) async fn client(&self) -> Result<Object, Error> {
        Ok(self.pool.get().await?)
    }

    pub(crate) async fn rows(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, Error> {
        let client = self.client().await?;
        let statement = client.prepare_cached(statement).await?;
        Ok(client.query(&statement, values).await?)
    }

    pub(crate) async fn row(&self, statement: &str, values: Values<'_>) -> Result<Row, Error> {
        self.rows(statement, values).await?.pop().ok_or(Error::NotFound)
    }
}

pub(crate) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotFound => "not found",
            Self::Invalid(reason) => reason,
            Self::Internal(_) => "internal error",
        })
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<deadpool_postgres::PoolError> for Error {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<askama::Error> for Error {
    fn from(error: askama::Error) -> Self {
        Self::Internal(error.to_string())
    }
}
