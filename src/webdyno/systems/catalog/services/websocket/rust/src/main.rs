//! Sends each message of a WebSocket back.

use std::env;

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::get;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(env::var("WORKERS")?.parse()?)
        .enable_all()
        .build()?;
    runtime.block_on(serve())
}

async fn serve() -> Result<(), Failure> {
    let address = (env::var("HOST")?, env::var("PORT")?.parse()?);
    let router = Router::new()
        .route("/plaintext", get(|| async { "Hello, World!" }))
        .route("/echo", get(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }));
    let listener = tokio::net::TcpListener::bind(address).await?;
    Ok(axum::serve(listener, router).await?)
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        let echoed = match message {
            Message::Text(_) | Message::Binary(_) => socket.send(message).await,
            // Pings and farewells are answered by themselves.
            _ => Ok(()),
        };
        if echoed.is_err() {
            return;
        }
    }
}
