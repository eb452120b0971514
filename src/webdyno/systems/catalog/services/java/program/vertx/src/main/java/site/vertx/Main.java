package site.vertx;

import io.vertx.core.DeploymentOptions;
import io.vertx.core.Vertx;

/** One verticle, with an event loop, for each worker. */
public final class Main {
    public static void main(String[] arguments) {
        int workers = Integer.parseInt(System.getenv("WORKERS"));
        Vertx.vertx()
                .deployVerticle(SiteVerticle.class, new DeploymentOptions().setInstances(workers))
                .onFailure(error -> {
                    error.printStackTrace();
                    System.exit(1);
                });
    }
}
