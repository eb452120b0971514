//! Sends each message of a WebSocket back, or to all who listen.

use std::env;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::get;
use tokio::sync::broadcast;

/// How many messages may wait for a listener that reads slowly, before it misses some.
const WAITING: usize = 256;

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
        .route("/echo", get(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }))
        .route("/broadcast", get(join))
        .with_state(broadcast::Sender::new(WAITING));
    let listener = tokio::net::TcpListener::bind(address).await?;
    Ok(axum::serve(listener, router).await?)
}

async fn join(
    State(all): State<broadcast::Sender<Message>>,
    upgrade: WebSocketUpgrade,
) -> axum::response::Response {
    upgrade.on_upgrade(|socket| send_to_all(socket, all))
}

async fn send_to_all(mut socket: WebSocket, all: broadcast::Sender<Message>) {
    let mut messages = all.subscribe();
    loop {
        tokio::select! {
            heard = socket.recv() => match heard {
                Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => {
                    // There is one who receives it: this one.
                    let _ = all.send(message);
                }
                Some(Ok(_)) => {}
                _ => return,
            },
            message = messages.recv() => {
                // One that was too slow has missed some.
                let Ok(message) = message else { return };
                if socket.send(message).await.is_err() {
                    return;
                }
            }
        }
    }
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
