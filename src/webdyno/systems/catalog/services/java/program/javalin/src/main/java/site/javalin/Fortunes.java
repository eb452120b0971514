package site.javalin;

import gg.jte.ContentType;
import gg.jte.TemplateEngine;
import gg.jte.output.StringOutput;
import io.javalin.config.RoutesConfig;
import io.javalin.http.Context;
import java.sql.SQLException;
import java.util.List;
import site.Fortune;

record Fortunes(Database database, TemplateEngine templates) {
    Fortunes(Database database) {
        this(database, TemplateEngine.createPrecompiled(ContentType.Html));
    }

    void addTo(RoutesConfig routes) {
        routes.get("/fortunes", this::page);
    }

    private void page(Context request) throws SQLException {
        List<Fortune> fortunes = database.query(
                "SELECT id, message FROM fortune", row -> new Fortune(row.getInt(1), row.getString(2)));
        fortunes.add(Fortune.ADDITIONAL);
        fortunes.sort(null);
        StringOutput page = new StringOutput();
        templates.render("fortunes.jte", fortunes, page);
        request.contentType("text/html; charset=utf-8").result(page.toString());
    }
}
