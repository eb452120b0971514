package site;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** What was received. */
public record Upload(long bytes, String sha256) {
    public static Upload of(InputStream body) throws IOException {
        MessageDigest hash = hash();
        long bytes = new DigestInputStream(body, hash).transferTo(OutputStream.nullOutputStream());
        return of(bytes, hash);
    }

    public static Upload of(long bytes, MessageDigest hash) {
        return new Upload(bytes, HexFormat.of().formatHex(hash.digest()));
    }

    public static MessageDigest hash() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException error) {
            throw new AssertionError("each Java has it", error);
        }
    }
}
