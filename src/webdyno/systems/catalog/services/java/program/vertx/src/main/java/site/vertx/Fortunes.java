package site.vertx;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.common.template.TemplateEngine;
import io.vertx.ext.web.templ.thymeleaf.ThymeleafTemplateEngine;
import io.vertx.sqlclient.Pool;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import site.Fortune;

final class Fortunes {
    private final Pool pool;
    private final TemplateEngine templates;

    Fortunes(Pool pool, Vertx vertx) {
        this.pool = pool;
        this.templates = ThymeleafTemplateEngine.create(vertx);
    }

    void addTo(Router router) {
        router.get("/fortunes").handler(request -> page()
                .onFailure(request::fail)
                .onSuccess(page -> request.response()
                        .putHeader(HttpHeaders.CONTENT_TYPE, "text/html; charset=utf-8")
                        .end(page)));
    }

    private Future<Buffer> page() {
        return pool.preparedQuery("SELECT id, message FROM fortune").execute().compose(rows -> {
            List<Fortune> fortunes = new ArrayList<>();
            rows.forEach(row -> fortunes.add(new Fortune(row.getInteger(0), row.getString(1))));
            fortunes.add(Fortune.ADDITIONAL);
            fortunes.sort(null);
            return templates.render(Map.of("fortunes", fortunes), "templates/fortunes.html");
        });
    }
}
