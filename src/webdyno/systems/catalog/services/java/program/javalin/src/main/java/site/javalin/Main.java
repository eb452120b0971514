package site.javalin;

import io.javalin.Javalin;
import io.javalin.compression.CompressionStrategy;
import io.javalin.config.JavalinConfig;
import io.javalin.config.RoutesConfig;
import io.javalin.http.Context;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import site.Failure;
import site.InvalidException;
import site.Message;
import site.NotFoundException;
import site.Upload;

public final class Main {
    public static void main(String[] arguments) {
        Javalin.create(Main::configure).start();
    }

    private static void configure(JavalinConfig config) {
        config.startup.showJavalinBanner = false;
        config.http.compressionStrategy = CompressionStrategy.NONE;
        config.jetty.threadPool = new QueuedThreadPool(whole("WORKERS"));
        config.jetty.modifyHttpConfiguration(http -> http.setIdleTimeout(1000L * whole("KEEPALIVE_TIMEOUT_S")));
        config.jetty.addConnector(Main::connector);
        addRoutes(config.routes);
    }

    private static ServerConnector connector(Server server, HttpConfiguration http) {
        ServerConnector connector = new ServerConnector(server, new HttpConnectionFactory(http));
        connector.setHost(System.getenv("HOST"));
        connector.setPort(whole("PORT"));
        connector.setAcceptQueueSize(1024); // by default Java lets 50 clients wait to connect
        return connector;
    }

    private static void addRoutes(RoutesConfig routes) {
        routes.get("/plaintext", request -> request.contentType("text/plain").result("Hello, World!"));
        routes.get("/json", request -> request.json(new Message("Hello, World!")));
        routes.post("/upload", request -> request.json(Upload.of(request.bodyInputStream())));
        if (System.getenv("DATABASE_URL") != null) {
            Database database = Database.open(whole("DB_POOL"));
            new Worlds(database).addTo(routes);
            new Fortunes(database).addTo(routes);
            new Items(database).addTo(routes);
        }
        routes.exception(NotFoundException.class, (error, request) -> fail(request, 404, error));
        routes.exception(InvalidException.class, (error, request) -> fail(request, 400, error));
    }

    private static void fail(Context request, int status, Exception error) {
        request.status(status).json(new Failure(error.getMessage()));
    }

    private static int whole(String variable) {
        return Integer.parseInt(System.getenv(variable));
    }
}
