//! The sites on Actix Web.

mod handlers;

use actix_web::web::{self, ServiceConfig};
use actix_web::{App, HttpServer};
use site::{Store, variable};
use std::time::Duration;

#[actix_web::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open()?;
    let keepalive_s = variable("KEEPALIVE_TIMEOUT_S")?;
    let server = HttpServer::new(move || {
        let store = store.clone();
        App::new().configure(without_database).configure(|config| {
            if let Some(store) = store {
                with_database(config, store);
            }
        })
    });
    server
        .workers(variable("WORKERS")?)
        .keep_alive(Duration::from_secs(keepalive_s))
        .bind((variable::<String>("HOST")?, variable("PORT")?))?
        .run()
        .await?;
    Ok(())
}

fn without_database(config: &mut ServiceConfig) {
    config.service(handlers::plaintext).service(handlers::json).service(handlers::upload);
}

fn with_database(config: &mut ServiceConfig, store: Store) {
    config
        .app_data(web::Data::new(store))
        .service(handlers::show_world)
        .service(handlers::list_worlds)
        .service(handlers::change_worlds)
        .service(handlers::show_fortunes)
        .service(handlers::list_items)
        .service(handlers::show_item)
        .service(handlers::add_item)
        .service(handlers::update_item)
        .service(handlers::delete_item);
}
