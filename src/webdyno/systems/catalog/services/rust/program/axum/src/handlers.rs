use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::header::{ETAG, IF_NONE_MATCH, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use futures_util::TryStreamExt;
use serde::Deserialize;
use site::{
    Error, Failure, Item, Items, Message, NewItem, Received, Store, Upload, World, parse_id,
};

/// What answers a request that can't be fulfilled.
pub struct Failed(Error);

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let status = match &self.0 {
            Error::NotFound => StatusCode::NOT_FOUND,
            Error::Invalid(_) => StatusCode::BAD_REQUEST,
            Error::Internal(reason) => {
                eprintln!("{reason}");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        (status, Json(Failure { error: self.0.to_string() })).into_response()
    }
}

#[derive(Deserialize)]
pub struct Parameters {
    queries: Option<String>,
    page: Option<String>,
}

pub async fn plaintext() -> &'static str {
    "Hello, World!"
}

pub async fn json() -> Json<Message> {
    Json(Message { message: "Hello, World!" })
}

pub async fn upload(body: Body) -> Result<Json<Upload>, (StatusCode, String)> {
    let mut chunks = body.into_data_stream();
    let mut received = Received::default();
    let failed = |error: axum::Error| (StatusCode::BAD_REQUEST, error.to_string());
    while let Some(chunk) = chunks.try_next().await.map_err(failed)? {
        received.add(&chunk);
    }
    Ok(Json(received.finish()))
}

pub async fn world(State(store): State<Store>) -> Result<Json<World>, Failed> {
    Ok(Json(store.world().await?))
}

pub async fn worlds(
    State(store): State<Store>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Vec<World>>, Failed> {
    Ok(Json(store.worlds(site::count(parameters.queries.as_deref())).await?))
}

pub async fn updates(
    State(store): State<Store>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Vec<World>>, Failed> {
    Ok(Json(store.update_worlds(site::count(parameters.queries.as_deref())).await?))
}

pub async fn fortunes(State(store): State<Store>) -> Result<Html<String>, Failed> {
    Ok(Html(store.fortunes().await?))
}

pub async fn items(
    State(store): State<Store>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Items>, Failed> {
    Ok(Json(store.items(site::page_number(parameters.page.as_deref())).await?))
}

pub async fn item(
    State(store): State<Store>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Failed> {
    let item = store.item(parse_id(&id)?).await?;
    let tag = item.tag();
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    Ok(([(ETAG, tag)], Json(item)).into_response())
}

pub async fn add_item(State(store): State<Store>, body: Bytes) -> Result<Response, Failed> {
    let item = store.add_item(NewItem::parse(&body)?).await?;
    let location = format!("/items/{}", item.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(item)).into_response())
}

pub async fn update_item(
    State(store): State<Store>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Item>, Failed> {
    let changed = NewItem::parse(&body)?;
    Ok(Json(store.update_item(parse_id(&id)?, changed).await?))
}

pub async fn delete_item(
    State(store): State<Store>,
    Path(id): Path<String>,
) -> Result<StatusCode, Failed> {
    store.delete_item(parse_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
