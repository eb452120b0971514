package site.vertx;

import io.vertx.core.Future;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.json.DecodeException;
import io.vertx.core.json.JsonObject;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import io.vertx.ext.web.handler.BodyHandler;
import io.vertx.sqlclient.Pool;
import io.vertx.sqlclient.Row;
import io.vertx.sqlclient.Tuple;
import java.util.ArrayList;
import java.util.List;
import site.InvalidException;
import site.Item;
import site.NewItem;
import site.NotFoundException;
import site.Rules;

final class Items {
    private final Pool pool;

    Items(Pool pool) {
        this.pool = pool;
    }

    void addTo(Router router) {
        router.route("/items*").handler(BodyHandler.create(false));
        router.get("/items").respond(this::page);
        router.get("/items/:id").handler(this::find);
        router.post("/items").handler(this::add);
        router.put("/items/:id").respond(this::update);
        router.delete("/items/:id").handler(this::delete);
    }

    private Future<site.Items> page(RoutingContext request) {
        int page = Rules.page(request.request().getParam("page"));
        return pool.preparedQuery("SELECT count(*) FROM item").execute().compose(counted -> {
            long total = counted.iterator().next().getLong(0);
            return pool.preparedQuery("SELECT id, name, price, version FROM item ORDER BY id LIMIT $1 OFFSET $2")
                    .execute(Tuple.of(site.Items.PER_PAGE, site.Items.offset(page)))
                    .map(rows -> {
                        List<Item> items = new ArrayList<>();
                        rows.forEach(row -> items.add(item(row)));
                        return site.Items.of(page, total, items);
                    });
        });
    }

    private void find(RoutingContext request) {
        one("SELECT id, name, price, version FROM item WHERE id = $1", Tuple.of(id(request)))
                .onFailure(request::fail)
                .onSuccess(item -> {
                    request.response().putHeader(HttpHeaders.ETAG, item.tag());
                    if (item.tag().equals(request.request().getHeader(HttpHeaders.IF_NONE_MATCH))) {
                        request.response().setStatusCode(304).end();
                    } else {
                        request.json(item);
                    }
                });
    }

    private void add(RoutingContext request) {
        NewItem item = received(request);
        one(
                        "INSERT INTO item (name, price) VALUES ($1, $2) RETURNING id, name, price, version",
                        Tuple.of(item.name(), item.price()))
                .onFailure(request::fail)
                .onSuccess(added -> {
                    request.response().setStatusCode(201).putHeader(HttpHeaders.LOCATION, "/items/" + added.id());
                    request.json(added);
                });
    }

    private Future<Item> update(RoutingContext request) {
        NewItem item = received(request);
        return one(
                "UPDATE item SET name = $2, price = $3, version = version + 1 WHERE id = $1"
                        + " RETURNING id, name, price, version",
                Tuple.of(id(request), item.name(), item.price()));
    }

    private void delete(RoutingContext request) {
        one("DELETE FROM item WHERE id = $1 RETURNING id, name, price, version", Tuple.of(id(request)))
                .onFailure(request::fail)
                .onSuccess(item -> request.response().setStatusCode(204).end());
    }

    private Future<Item> one(String statement, Tuple values) {
        return pool.preparedQuery(statement).execute(values).map(rows -> {
            if (rows.size() == 0) {
                throw new NotFoundException();
            }
            return item(rows.iterator().next());
        });
    }

    private static Item item(Row row) {
        return new Item(row.getInteger(0), row.getString(1), row.getInteger(2), row.getInteger(3));
    }

    private static int id(RoutingContext request) {
        return Rules.id(request.pathParam("id"));
    }

    private static NewItem received(RoutingContext request) {
        JsonObject body;
        try {
            body = request.body().asJsonObject();
        } catch (DecodeException | ClassCastException error) {
            body = null;
        }
        if (body == null) {
            throw new InvalidException("not a JSON object");
        }
        return NewItem.of(body.getValue("name"), body.getValue("price"));
    }
}
