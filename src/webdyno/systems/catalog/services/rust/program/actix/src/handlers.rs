use actix_web::error::PayloadError;
use actix_web::http::StatusCode;
use actix_web::http::header::{ETAG, IF_NONE_MATCH, LOCATION};
use actix_web::web::{Bytes, Data, Html, Json, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse, ResponseError, delete, get, post, put};
use futures_util::TryStreamExt;
use serde::Deserialize;
use site::{
    Error, Failure, Item, Items, Message, NewItem, Received, Store, Upload, World, parse_id,
};
use std::fmt;

/// What answers a request that can't be fulfilled.
#[derive(Debug)]
pub struct Failed(Error);

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl ResponseError for Failed {
    fn status_code(&self) -> StatusCode {
        match &self.0 {
            Error::NotFound => StatusCode::NOT_FOUND,
            Error::Invalid(_) => StatusCode::BAD_REQUEST,
            Error::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        if let Error::Internal(reason) = &self.0 {
            eprintln!("{reason}");
        }
        HttpResponse::build(self.status_code()).json(Failure { error: self.to_string() })
    }
}

#[derive(Deserialize)]
pub struct Parameters {
    queries: Option<String>,
    page: Option<String>,
}

#[get("/plaintext")]
pub async fn plaintext() -> &'static str {
    "Hello, World!"
}

#[get("/json")]
pub async fn json() -> Json<Message> {
    Json(Message { message: "Hello, World!" })
}

#[post("/upload")]
pub async fn upload(mut body: Payload) -> Result<Json<Upload>, PayloadError> {
    let mut received = Received::default();
    while let Some(chunk) = body.try_next().await? {
        received.add(&chunk);
    }
    Ok(Json(received.finish()))
}

#[get("/db")]
pub async fn show_world(store: Data<Store>) -> Result<Json<World>, Failed> {
    Ok(Json(store.world().await?))
}

#[get("/queries")]
pub async fn list_worlds(
    store: Data<Store>,
    parameters: Query<Parameters>,
) -> Result<Json<Vec<World>>, Failed> {
    Ok(Json(store.worlds(site::count(parameters.queries.as_deref())).await?))
}

#[get("/updates")]
pub async fn change_worlds(
    store: Data<Store>,
    parameters: Query<Parameters>,
) -> Result<Json<Vec<World>>, Failed> {
    Ok(Json(store.update_worlds(site::count(parameters.queries.as_deref())).await?))
}

#[get("/fortunes")]
pub async fn show_fortunes(store: Data<Store>) -> Result<Html, Failed> {
    Ok(Html::new(store.fortunes().await?))
}

#[get("/items")]
pub async fn list_items(
    store: Data<Store>,
    parameters: Query<Parameters>,
) -> Result<Json<Items>, Failed> {
    Ok(Json(store.items(site::page_number(parameters.page.as_deref())).await?))
}

#[get("/items/{id}")]
pub async fn show_item(
    store: Data<Store>,
    id: Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, Failed> {
    let item = store.item(parse_id(&id)?).await?;
    let tag = item.tag();
    let known = request.headers().get(IF_NONE_MATCH);
    if known.is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return Ok(HttpResponse::NotModified().insert_header((ETAG, tag)).finish());
    }
    Ok(HttpResponse::Ok().insert_header((ETAG, tag)).json(item))
}

#[post("/items")]
pub async fn add_item(store: Data<Store>, body: Bytes) -> Result<HttpResponse, Failed> {
    let item = store.add_item(NewItem::parse(&body)?).await?;
    let location = format!("/items/{}", item.id);
    Ok(HttpResponse::Created().insert_header((LOCATION, location)).json(item))
}

#[put("/items/{id}")]
pub async fn update_item(
    store: Data<Store>,
    id: Path<String>,
    body: Bytes,
) -> Result<Json<Item>, Failed> {
    let changed = NewItem::parse(&body)?;
    Ok(Json(store.update_item(parse_id(&id)?, changed).await?))
}

#[delete("/items/{id}")]
pub async fn delete_item(store: Data<Store>, id: Path<String>) -> Result<HttpResponse, Failed> {
    store.delete_item(parse_id(&id)?).await?;
    Ok(HttpResponse::NoContent().finish())
}
