package site.javalin;

import io.javalin.config.RoutesConfig;
import io.javalin.http.Context;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import site.InvalidException;
import site.Item;
import site.NewItem;
import site.NotFoundException;
import site.Rules;

record Items(Database database) {
    void addTo(RoutesConfig routes) {
        routes.get("/items", this::page);
        routes.get("/items/{id}", this::find);
        routes.post("/items", this::add);
        routes.put("/items/{id}", this::update);
        routes.delete("/items/{id}", this::delete);
    }

    private void page(Context request) throws SQLException {
        int page = Rules.page(request.queryParam("page"));
        long total = database.query("SELECT count(*) FROM item", row -> row.getLong(1)).get(0);
        List<Item> items = database.query(
                "SELECT id, name, price, version FROM item ORDER BY id LIMIT ? OFFSET ?",
                Items::item, site.Items.PER_PAGE, site.Items.offset(page));
        request.json(site.Items.of(page, total, items));
    }

    private void find(Context request) throws SQLException {
        Item item = one("SELECT id, name, price, version FROM item WHERE id = ?", id(request));
        request.header("ETag", item.tag());
        if (item.tag().equals(request.header("If-None-Match"))) {
            request.status(304);
        } else {
            request.json(item);
        }
    }

    private void add(Context request) throws SQLException {
        NewItem item = received(request);
        Item added = one(
                "INSERT INTO item (name, price) VALUES (?, ?) RETURNING id, name, price, version",
                item.name(), item.price());
        request.status(201).header("Location", "/items/" + added.id()).json(added);
    }

    private void update(Context request) throws SQLException {
        NewItem item = received(request);
        request.json(one(
                "UPDATE item SET name = ?, price = ?, version = version + 1 WHERE id = ?"
                        + " RETURNING id, name, price, version",
                item.name(), item.price(), id(request)));
    }

    private void delete(Context request) throws SQLException {
        one("DELETE FROM item WHERE id = ? RETURNING id, name, price, version", id(request));
        request.status(204);
    }

    private Item one(String sql, Object... values) throws SQLException {
        return database.query(sql, Items::item, values).stream().findFirst().orElseThrow(NotFoundException::new);
    }

    private static Item item(ResultSet row) throws SQLException {
        return new Item(row.getInt(1), row.getString(2), row.getInt(3), row.getInt(4));
    }

    private static int id(Context request) {
        return Rules.id(request.pathParam("id"));
    }

    private static NewItem received(Context request) {
        Map<?, ?> body;
        try {
            body = request.bodyAsClass(Map.class);
        } catch (Exception error) { // whatever the library throws at what isn't JSON
            throw new InvalidException("not a JSON object");
        }
        return NewItem.of(body.get("name"), body.get("price"));
    }
}
