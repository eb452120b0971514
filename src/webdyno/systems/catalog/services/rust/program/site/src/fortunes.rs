use crate::store::{Error, Store};
use askama::Template;

struct Fortune {
    id: i32,
    message: String,
}

#[derive(Template)]
#[template(path = "fortunes.html")]
struct Page {
    fortunes: Vec<Fortune>,
}

impl Store {
    /// The page of all fortunes and an additional one.
    pub async fn fortunes(&self) -> Result<String, Error> {
        let rows = self.rows("SELECT id, message FROM fortune", &[]).await?;
        let mut fortunes: Vec<_> =
            rows.iter().map(|row| Fortune { id: row.get(0), message: row.get(1) }).collect();
        let message = "Additional fortune added at request time.".to_owned();
        fortunes.push(Fortune { id: 0, message });
        fortunes.sort_by(|a, b| a.message.cmp(&b.message));
        Ok(Page { fortunes }.render()?)
    }
}
