# All sites in Mojolicious::Lite; each process has one connection to the database, and waits for it.
use Mojolicious::Lite -signatures;

use Digest::SHA;
use Mojo::JSON qw(encode_json);
use Mojo::Pg;

use constant {HIGHEST => 2**31 - 1, PER_PAGE => 20, ROWS => 10_000};

my $ITEM = 'SELECT id, name, price, version FROM item';

helper pg => sub {
  state $pg = Mojo::Pg->new($ENV{DATABASE_URL})->max_connections(1);
};

helper not_there => sub ($c) { $c->render(json => {error => 'not found'}, status => 404) };

# A whole number from 1 to the highest; 1 for what isn't one.
sub whole ($text, $highest) {
  return 1 unless ($text // '') =~ /\A\d+\z/a && $text > 0;
  return $text < $highest ? 0 + $text : $highest;
}

sub any_id { 1 + int rand ROWS }

sub world ($db, $id) {
  my $found = $db->query('SELECT id, randomnumber FROM world WHERE id = ?', $id);
  my ($key, $number) = @{$found->array};
  return {id => 0 + $key, randomNumber => 0 + $number};
}

sub item ($row) {
  return {name => $row->{name}, map { $_ => 0 + $row->{$_} } qw(id price version)};
}

# What is wrong with an item from a client, if anything is.
sub fault_of ($item) {
  return 'an item is a JSON object' unless ref $item eq 'HASH';
  my ($name, $price) = @$item{qw(name price)};
  return 'name should have 1 to 100 characters'
    if ref $name || encode_json([$name]) !~ /\A\["/ || $name !~ /\A[^\0]{1,100}\z/;
  return 'price should be a whole number, 0 or more'
    if ref $price || encode_json([$price]) !~ /\A\[\d+\]\z/a || $price > HIGHEST;
  return undef;
}

get '/plaintext' => sub ($c) { $c->render(text => 'Hello, World!', format => 'txt') };

get '/json' => sub ($c) { $c->render(json => {message => 'Hello, World!'}) };

get '/db' => sub ($c) { $c->render(json => world($c->pg->db, any_id())) };

get '/queries' => sub ($c) {
  my ($db, @worlds) = ($c->pg->db);
  for (my $left = whole($c->param('queries'), 500); $left > 0; $left--) {
    push @worlds, world($db, any_id());
  }
  $c->render(json => \@worlds);
};

get '/updates' => sub ($c) {
  my ($count, $db, %ids, @worlds) = (whole($c->param('queries'), 500), $c->pg->db);
  $ids{any_id()} = 1 while keys %ids < $count;

  # In the order of their ids, so that two requests never wait for each other.
  for my $id (sort { $a <=> $b } keys %ids) { push @worlds, world($db, $id) }
  my $transaction = $db->begin;
  for my $world (@worlds) {
    $world->{randomNumber} = any_id();
    $db->query('UPDATE world SET randomnumber = ? WHERE id = ?',
      @$world{qw(randomNumber id)});
  }
  $transaction->commit;
  $c->render(json => \@worlds);
};

get '/fortunes' => sub ($c) {
  my $found = $c->pg->db->query('SELECT id, message FROM fortune');
  my @rows  = (@{$found->arrays}, [0, 'Additional fortune added at request time.']);
  $c->render('fortunes', fortunes => [sort { $a->[1] cmp $b->[1] } @rows]);
};

get '/items' => sub ($c) {
  my ($page, $db) = (whole($c->param('page'), HIGHEST), $c->pg->db);
  my $counted = $db->query('SELECT count(*) FROM item');
  my $total   = 0 + $counted->array->[0];
  my $found   = $db->query("$ITEM ORDER BY id LIMIT ? OFFSET ?", PER_PAGE,
    ($page - 1) * PER_PAGE);
  my $pages = int(($total + PER_PAGE - 1) / PER_PAGE);
  my @items = map { item($_) } @{$found->hashes};
  $c->render(json => {page => $page, pages => $pages, total => $total, items => \@items});
};

post '/items' => sub ($c) {
  my $sent = $c->req->json;
  if (my $fault = fault_of($sent)) { return $c->render(json => {error => $fault}, status => 400) }
  my $found
    = $c->pg->db->query(
    'INSERT INTO item (name, price) VALUES (?, ?) RETURNING id, name, price, version',
    @$sent{qw(name price)});
  my $item = item($found->hash);
  $c->res->headers->location("/items/$item->{id}");
  $c->render(json => $item, status => 201);
};

get '/items/<id:num>' => sub ($c) {
  my $found = $c->pg->db->query("$ITEM WHERE id = ?::bigint", $c->param('id'));
  my $row   = $found->hash or return $c->not_there;
  return $c->rendered(304) if $c->is_fresh(etag => $row->{version});
  $c->render(json => item($row));
};

put '/items/<id:num>' => sub ($c) {
  my $sent = $c->req->json;
  if (my $fault = fault_of($sent)) { return $c->render(json => {error => $fault}, status => 400) }
  my $found = $c->pg->db->query(
    'UPDATE item SET name = ?, price = ?, version = version + 1 WHERE id = ?::bigint '
      . 'RETURNING id, name, price, version', @$sent{qw(name price)}, $c->param('id')
  );
  my $row = $found->hash or return $c->not_there;
  $c->render(json => item($row));
};

del '/items/<id:num>' => sub ($c) {
  my $gone = $c->pg->db->query('DELETE FROM item WHERE id = ?::bigint', $c->param('id'));
  return $c->not_there unless $gone->rows;
  $c->rendered(204);
};

post '/upload' => sub ($c) {
  my ($asset, $hash, $read) = ($c->req->content->asset, Digest::SHA->new(256), 0);
  while (length(my $chunk = $asset->get_chunk($read))) {
    $hash->add($chunk);
    $read += length $chunk;
  }
  $c->render(json => {bytes => $read, sha256 => $hash->hexdigest});
};

any '/*rest' => {rest => ''} => sub ($c) { $c->not_there };

app->log->level('warn');
app->renderer->compress(0);
app->secrets(['nothing here is signed']);
app->start;

__DATA__

@@ fortunes.html.ep
<!DOCTYPE html>
<html>
<head><title>Fortunes</title></head>
<body>
<table>
<tr><th>id</th><th>message</th></tr>
% for my $fortune (@$fortunes) {
<tr><td><%= $fortune->[0] %></td><td><%= $fortune->[1] %></td></tr>
% }
</table>
</body>
</html>
