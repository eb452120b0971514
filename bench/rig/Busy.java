import com.sun.net.httpserver.*;
import java.net.InetSocketAddress;
import java.util.*;
import java.util.concurrent.Executors;

/** Answers with a document that it makes again of maps, streams and regular expressions: much to compile. */
public class Busy {
    public static void main(String[] words) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 1024);
        server.createContext("/", exchange -> {
            byte[] body = page().getBytes();
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(200));
        server.start();
    }

    static String page() {
        StringBuilder out = new StringBuilder("[");
        TreeMap<String, List<Integer>> byName = new TreeMap<>();
        for (int i = 0; i < 30; i++) {
            String name = String.format("item-%03d", (i * 7919) % 97);
            byName.computeIfAbsent(name, it -> new ArrayList<>()).add(i * i % 1009);
        }
        byName.forEach((name, values) -> {
            int sum = values.stream().mapToInt(Integer::intValue).filter(it -> it % 3 != 0).sum();
            String said = name.replaceAll("[0-4]", "x").toUpperCase(Locale.ROOT);
            out.append("{\"name\":\"").append(said).append("\",\"sum\":").append(sum).append(",\"sorted\":")
                .append(values.stream().sorted(Comparator.reverseOrder()).toList()).append("},");
        });
        return out.append("null]").toString();
    }
}
