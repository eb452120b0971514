//! The sites on axum.

mod handlers;

use axum::Router;
use axum::routing::{get, post};
use site::{Store, variable};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(variable("WORKERS")?)
        .enable_all()
        .build()?;
    runtime.block_on(serve())
}

async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let address = (variable::<String>("HOST")?, variable("PORT")?);
    let mut router = Router::new()
        .route("/plaintext", get(handlers::plaintext))
        .route("/json", get(handlers::json))
        .route("/upload", post(handlers::upload));
    if let Some(store) = Store::open()? {
        router = router.merge(with_database(store));
    }
    let listener = tokio::net::TcpListener::bind(address).await?;
    Ok(axum::serve(listener, router).await?)
}

fn with_database(store: Store) -> Router {
    let item = get(handlers::item).put(handlers::update_item).delete(handlers::delete_item);
    Router::new()
        .route("/db", get(handlers::world))
        .route("/queries", get(handlers::worlds))
        .route("/updates", get(handlers::updates))
        .route("/fortunes", get(handlers::fortunes))
        .route("/items", get(handlers::items).post(handlers::add_item))
        .route("/items/{id}", item)
        .with_state(store)
}
