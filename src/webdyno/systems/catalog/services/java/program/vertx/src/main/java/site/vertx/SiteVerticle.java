package site.vertx;

import io.vertx.core.Future;
import io.vertx.core.VerticleBase;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import io.vertx.pgclient.PgBuilder;
import io.vertx.pgclient.PgConnectOptions;
import io.vertx.sqlclient.Pool;
import io.vertx.sqlclient.PoolOptions;
import java.security.MessageDigest;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;
import site.Failure;
import site.InvalidException;
import site.Message;
import site.NotFoundException;
import site.Upload;

public final class SiteVerticle extends VerticleBase {
    private static final DateTimeFormatter DATE =
            DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH).withZone(ZoneOffset.UTC);

    private String date;

    @Override
    public Future<?> start() {
        Router router = Router.router(vertx);
        addDate(router);
        router.get("/plaintext").handler(request -> request.response()
                .putHeader(HttpHeaders.CONTENT_TYPE, "text/plain")
                .end("Hello, World!"));
        router.get("/json").respond(request -> Future.succeededFuture(new Message("Hello, World!")));
        router.post("/upload").handler(SiteVerticle::upload);
        String url = System.getenv("DATABASE_URL");
        if (url != null) {
            Pool pool = connect(url);
            new Worlds(pool).addTo(router);
            new Fortunes(pool, vertx).addTo(router);
            new Items(pool).addTo(router);
        }
        router.route().failureHandler(SiteVerticle::fail);
        HttpServerOptions options = new HttpServerOptions().setIdleTimeout(whole("KEEPALIVE_TIMEOUT_S"));
        return vertx.createHttpServer(options)
                .requestHandler(router)
                .listen(whole("PORT"), System.getenv("HOST"));
    }

    /** Vert.x leaves the date of responses to its users. */
    private void addDate(Router router) {
        date = DATE.format(Instant.now());
        vertx.setPeriodic(1000, timer -> date = DATE.format(Instant.now()));
        router.route().handler(request -> {
            request.response().putHeader(HttpHeaders.DATE, date);
            request.next();
        });
    }

    /** One pool, which all verticles share. */
    private Pool connect(String url) {
        return PgBuilder.pool()
                .with(new PoolOptions().setShared(true).setName("site").setMaxSize(whole("DB_POOL")))
                .connectingTo(PgConnectOptions.fromUri(url).setCachePreparedStatements(true))
                .using(vertx)
                .build();
    }

    private static void upload(RoutingContext request) {
        MessageDigest hash = Upload.hash();
        AtomicLong bytes = new AtomicLong();
        request.request()
                .handler(chunk -> {
                    hash.update(chunk.getBytes());
                    bytes.addAndGet(chunk.length());
                })
                .endHandler(end -> request.json(Upload.of(bytes.get(), hash)));
    }

    private static void fail(RoutingContext request) {
        Throwable error = request.failure();
        if (error instanceof NotFoundException) {
            request.response().setStatusCode(404);
        } else if (error instanceof InvalidException) {
            request.response().setStatusCode(400);
        } else {
            request.next();
            return;
        }
        request.json(new Failure(error.getMessage()));
    }

    private static int whole(String variable) {
        return Integer.parseInt(System.getenv(variable));
    }
}
